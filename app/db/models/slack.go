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
	SessionID core.SessionID `gorm:"primaryKey"`
	ItemID    string         `gorm:"primaryKey"`
	Part      int            `gorm:"primaryKey;autoIncrement:false"`
	Owner     string
	Kind      core.SlackPostKind
	Team      string
	Channel   string
	Thread    string
	TS        string
	State     core.SlackPostState
	Streaming bool
	OffPath   bool
	From      int `gorm:"column:text_from"`
	To        int `gorm:"column:text_to"`
	Hash      string
	Error     string
	CreatedAt time.Time `gorm:"autoCreateTime:false"`
}

// Core returns the post of the row.
func (p SlackPost) Core() core.SlackPost {
	p.CreatedAt = toUTC(p.CreatedAt)
	return core.SlackPost(p)
}
