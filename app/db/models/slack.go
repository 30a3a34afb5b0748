package models

import (
	"time"

	"bobbin/app/core"
)

// SlackThread is a row of slack_threads.
type SlackThread struct {
	core.SlackThread
	FirstSeq   int64
	SentSeq    int64
	LastSeq    int64
	LeaseOwner string
	LeaseUntil *time.Time
	DueAt      time.Time
	Reason     string
	CreatedAt  time.Time `gorm:"autoCreateTime:false"`
}

// SlackItem is a row of slack_inbox.
type SlackItem struct {
	core.SlackItem
	Payload    string    // empty when it is done
	DueAt      time.Time // the next attempt, or the end of the lease; by the database's clock; zero = it is new
	FinishedAt *time.Time
}

// TableName is the table's name.
func (SlackItem) TableName() string { return "slack_inbox" }

// Core returns the item of the row.
func (r SlackItem) Core() core.SlackItem {
	r.SlackItem.Payload = []byte(r.Payload)
	return r.SlackItem
}
