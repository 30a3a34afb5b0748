package models

import (
	"encoding/json"
	"time"

	"bobbin/app/core"
)

// Run is a row of runs.
type Run struct {
	core.Run
	LastWrite string  // core.RunWrite.ID
	Webhook   Webhook `gorm:"embedded;embeddedPrefix:webhook_"`
}

// RunFrom returns the row of a run.
func RunFrom(r core.Run) Run { return Run{Run: r, Webhook: WebhookFrom(r.Webhook)} }

// Core returns the run of the row.
func (r Run) Core() core.Run {
	r.Run.Webhook = r.Webhook.Core()
	return r.Run
}

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

// The levels of usage days: whose calls a row sums. A row of a level with a session has no
// agent and no model; one without a user has no user.
const (
	UsageOfAll         = "all"
	UsageOfUser        = "user"
	UsageOfSession     = "session"
	UsageOfUserSession = "user_session"
)

// UsageDay is a row of usage_days: the usage of model calls of one day.
type UsageDay struct {
	Owner           string `gorm:"primaryKey"`
	Level           string `gorm:"primaryKey"` // whose they were; see the constants
	UserID          string `gorm:"primaryKey"`
	SessionID       string `gorm:"primaryKey"`
	Day             string `gorm:"primaryKey"` // of UTC: 2026-01-31
	Agent           string `gorm:"primaryKey"`
	Model           string `gorm:"primaryKey"`
	Shard           int    `gorm:"primaryKey"`
	core.UsageTotal `gorm:"embedded"`
	SpentTokens     int64 // that count against a limit
}
