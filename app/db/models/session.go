package models

import (
	"encoding/json"
	"time"

	"bobbin/app/core"
)

// Session is a row of sessions.
type Session struct {
	core.Session
	IndexedSeq     int64 // no more than the seq of ReaderSearch; finds sessions that are not indexed
	LastQueueSeq   int64
	TitleMessageID Ref             // the question from which the last title was generated
	TitleMade      bool            // Title was generated, not set by a user
	Usage          core.UsageTotal `gorm:"embedded;embeddedPrefix:usage_"`
	Webhook        Webhook         `gorm:"embedded;embeddedPrefix:webhook_"`

	SummaryLeaseOwner   string // who is summarizing; Sessions.LeaseSummary
	SummaryLeaseUntil   *time.Time
	SummaryLeaseSince   *time.Time
	SummaryFailures     int // of the summary model, in a row
	SummaryFailure      string
	SummaryBreakerUntil *time.Time

	Busy      string // why it is busy: repositories/session_lease.go
	BusyOwner string
	BusyUntil *time.Time
}

// Core returns the session of the row.
func (r Session) Core() core.Session {
	s := r.Session
	s.Webhook, s.Importing, s.Status = r.Webhook.Core(), r.Busy != "", core.SessionIdle
	return s.WithExpiry()
}

// SessionRuns is the state of a session's runs, read with the session.
type SessionRuns struct {
	ActiveID      Ref    // the run that is running or waiting; empty = none
	ActiveStatus  string // of that run
	NextID        Ref    // the oldest queued run; empty = none
	OpenApprovals int    // of the run that is waiting
}

// Apply sets the state of the runs on the session.
func (r SessionRuns) Apply(s *core.Session) {
	s.OpenApprovals = r.OpenApprovals
	switch {
	case r.ActiveID != "":
		s.Status, s.ActiveRunID = core.SessionStatus(r.ActiveStatus), core.RunID(r.ActiveID)
	case r.NextID != "":
		s.Status, s.ActiveRunID = core.SessionQueued, core.RunID(r.NextID)
	}
}

// SessionAlias is a row of session_aliases.
type SessionAlias struct {
	Owner     string `gorm:"primaryKey"`
	Surface   string `gorm:"primaryKey"`
	Alias     string `gorm:"primaryKey"`
	SessionID string
	CreatedAt time.Time `gorm:"autoCreateTime:false"`
}

// PromptSetup is a row of prompt_setups.
type PromptSetup struct {
	SessionID    string `gorm:"primaryKey"`
	Hash         string `gorm:"primaryKey"`
	Owner        string
	SystemPrompt string
	ToolUsage    string
	Tools        string    // JSON, byte for byte
	CreatedAt    time.Time `gorm:"autoCreateTime:false"`
}

// StoredBytes returns what storing the setup counts.
func (r PromptSetup) StoredBytes() int64 {
	return int64(core.StoredRow + len(r.SystemPrompt) + len(r.ToolUsage) + len(r.Tools))
}

// Core returns the setup of the row.
func (r PromptSetup) Core() core.PromptSetup {
	return core.PromptSetup{Hash: r.Hash, SystemPrompt: r.SystemPrompt, ToolUsage: r.ToolUsage, Tools: json.RawMessage(r.Tools)}
}
