package models

import (
	"time"

	"bobbin/app/core"
)

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
