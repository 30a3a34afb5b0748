package models

import (
	"time"

	"bobbin/app/core"
)

// SlackThread is a row of slack_threads.
type SlackThread struct {
	Team       string `gorm:"primaryKey"`
	Channel    string `gorm:"primaryKey"`
	Thread     string `gorm:"primaryKey"`
	SessionID  string
	Owner      string
	Mode       string
	FirstSeq   int64
	SentSeq    int64
	LastSeq    int64
	LeaseOwner string
	LeaseUntil *time.Time
	DueAt      time.Time
	Reason     string
	CreatedAt  time.Time `gorm:"autoCreateTime:false"`
}

// Core returns the thread of the row.
func (t SlackThread) Core() core.SlackThread {
	return core.SlackThread{
		SessionID: core.SessionID(t.SessionID), Owner: t.Owner,
		Team: t.Team, Channel: t.Channel, Thread: t.Thread, Mode: core.SlackMode(t.Mode),
	}
}

// Backlog returns the leased thread of the row.
func (t SlackThread) Backlog() core.SlackBacklog {
	return core.SlackBacklog{SlackThread: t.Core(), FirstSeq: t.FirstSeq, SentSeq: t.SentSeq}
}

// SlackPost is a row of slack_posts.
type SlackPost struct {
	SessionID string `gorm:"primaryKey"`
	ItemID    string `gorm:"primaryKey"`
	Part      int    `gorm:"primaryKey;autoIncrement:false"`
	Owner     string
	Kind      string
	Team      string
	Channel   string
	Thread    string
	TS        string
	State     string
	Streaming bool
	OffPath   bool
	From      int `gorm:"column:text_from"`
	To        int `gorm:"column:text_to"`
	Hash      string
	Error     string
	CreatedAt time.Time `gorm:"autoCreateTime:false"`
}

// SlackPostFrom returns the row of a post.
func SlackPostFrom(p core.SlackPost) SlackPost {
	return SlackPost{
		SessionID: string(p.SessionID), ItemID: p.ItemID, Part: p.Part, Owner: p.Owner, Kind: string(p.Kind),
		Team: p.Team, Channel: p.Channel, Thread: p.Thread, TS: p.TS, State: string(p.State), Streaming: p.Streaming, OffPath: p.OffPath,
		From: p.From, To: p.To, Hash: p.Hash, Error: p.Error, CreatedAt: p.CreatedAt,
	}
}

// Core returns the post of the row.
func (p SlackPost) Core() core.SlackPost {
	return core.SlackPost{
		SessionID: core.SessionID(p.SessionID), ItemID: p.ItemID, Part: p.Part, Owner: p.Owner, Kind: core.SlackPostKind(p.Kind),
		Team: p.Team, Channel: p.Channel, Thread: p.Thread, TS: p.TS, State: core.SlackPostState(p.State), Streaming: p.Streaming, OffPath: p.OffPath,
		From: p.From, To: p.To, Hash: p.Hash, Error: p.Error, CreatedAt: toUTC(p.CreatedAt),
	}
}
