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

// SlackInstallation is a row of slack_installations.
type SlackInstallation struct {
	Team      string `gorm:"primaryKey"`
	Name      string
	App       string
	BotUser   string
	Owner     string
	Scopes    string
	Tokens    []byte // NULL when revoked
	State     core.SlackInstallationState
	CreatedAt time.Time `gorm:"autoCreateTime:false"`
	UpdatedAt time.Time `gorm:"autoUpdateTime:false"`
}

// Core returns the installation of the row.
func (r SlackInstallation) Core() core.SlackInstallation {
	r.CreatedAt, r.UpdatedAt = toUTC(r.CreatedAt), toUTC(r.UpdatedAt)
	return core.SlackInstallation(r)
}

// SlackItem is a row of slack_inbox.
type SlackItem struct {
	ID         string `gorm:"primaryKey"`
	Owner      string
	App        string
	ItemKey    string
	Kind       string
	Lane       string
	Position   string
	UserID     string
	Gesture    string
	Payload    string // empty when it is done
	SessionID  Ref
	Attempts   int
	Error      string
	LeaseOwner string
	DueAt      time.Time // the next attempt, or the end of the lease; by the database's clock
	CreatedAt  time.Time `gorm:"autoCreateTime:false"`
	FinishedAt *time.Time
}

// TableName is the table's name.
func (SlackItem) TableName() string { return "slack_inbox" }

// SlackItemFrom returns the row of a new item.
func SlackItemFrom(i core.SlackItem) SlackItem {
	return SlackItem{
		ID: string(i.ID), Owner: i.Owner, App: i.App, ItemKey: i.Key, Kind: string(i.Kind), Lane: i.Lane, Position: i.Position,
		UserID: i.User, Gesture: i.Gesture, Payload: string(i.Payload), CreatedAt: i.CreatedAt,
	}
}

// Core returns the item of the row.
func (r SlackItem) Core() core.SlackItem {
	return core.SlackItem{
		ID: core.SlackItemID(r.ID), Owner: r.Owner, App: r.App, Key: r.ItemKey, Kind: core.SlackKind(r.Kind), Lane: r.Lane, Position: r.Position,
		User: r.UserID, Gesture: r.Gesture, Payload: []byte(r.Payload), SessionID: core.SessionID(r.SessionID), Attempts: r.Attempts, Error: r.Error,
		Lease: r.LeaseOwner, CreatedAt: toUTC(r.CreatedAt),
	}
}
