package models

import (
	"time"

	"bobbin/app/core"
)

// Event is a row of session_events.
type Event struct {
	SessionID string `gorm:"primaryKey"`
	EventSeq  int64  `gorm:"primaryKey;autoIncrement:false"`
	Owner     string
	Type      string
	RunID     Ref
	At        time.Time
	Data      JSON
}

// TableName is the table's name.
func (Event) TableName() string { return "session_events" }

// EventFrom returns the row of an event in a session of the owner.
func EventFrom(owner string, e core.Event) Event {
	data := JSON(e.Data)
	if len(data) == 0 {
		data = JSON("{}")
	}
	return Event{
		SessionID: string(e.SessionID), EventSeq: e.Seq, Owner: owner, Type: string(e.Type),
		RunID: Ref(e.RunID), At: e.At, Data: data,
	}
}

// Core returns the event of the row.
func (r Event) Core() core.Event {
	return core.Event{
		SessionID: core.SessionID(r.SessionID), Seq: r.EventSeq, Type: core.EventType(r.Type),
		RunID: core.RunID(r.RunID), At: utc(r.At), Data: r.Data.raw(),
	}
}
