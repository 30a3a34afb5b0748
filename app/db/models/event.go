package models

import (
	"encoding/json"
	"time"

	"bobbin/app/core"
)

// Event is a row of session_events.
type Event struct {
	SessionID string `gorm:"primaryKey;type:uuid"`
	EventSeq  int64  `gorm:"primaryKey;autoIncrement:false"`
	Owner     string
	Type      string
	RunID     Ref `gorm:"type:uuid"`
	At        time.Time
	Data      JSON `gorm:"type:json"`
}

// TableName is the table's name.
func (Event) TableName() string { return "session_events" }

// EventFrom returns the row of an event in a session of the owner.
func EventFrom(owner string, e core.Event) (Event, error) {
	data, err := EventData(e.Data)
	return Event{
		SessionID: string(e.SessionID), EventSeq: e.Seq, Owner: owner, Type: string(e.Type),
		RunID: Ref(e.RunID), At: e.At, Data: data,
	}, err
}

// EventData returns the data of an event as they are stored.
func EventData(data any) (JSON, error) {
	raw, err := core.EncodeJSON(data)
	if err != nil {
		return nil, core.Errorf(core.ErrInvalid, "event data: %v", err)
	}
	return raw, nil
}

// Core returns the event of the row.
func (r Event) Core() core.Event {
	kind := core.EventType(r.Type)
	return core.Event{
		SessionID: core.SessionID(r.SessionID), Seq: r.EventSeq, Type: kind,
		RunID: core.RunID(r.RunID), At: r.At, Data: core.DecodeEventData(kind, json.RawMessage(r.Data)), Size: len(r.Data),
	}
}
