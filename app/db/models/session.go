package models

import (
	"time"

	"bobbin/app/core"
)

// Session is a row of sessions.
type Session struct {
	ID           string `gorm:"primaryKey"`
	Owner        string
	Agent        string
	Model        string
	Title        string
	UserID       string
	Source       string
	Timezone     string
	Instructions string
	Metadata     JSON
	Pinned       bool
	Temporary    bool
	Tags         JSON
	Slack        bool   // a thread of Slack is bound to it: slack_threads
	Speakers     string // core.AfterSpeaker
	MessageCount int
	LastSeq      int64
	IndexedSeq   int64 // no more than the seq of ReaderSearch; finds sessions that are not indexed
	LastEventSeq int64
	LastQueueSeq int64
	CreatedAt    time.Time `gorm:"autoCreateTime:false"`
	UpdatedAt    time.Time `gorm:"autoUpdateTime:false"`
	ArchivedAt   *time.Time
	TitledAt     *time.Time

	TitleMessageID Ref  // the question from which the last title was generated
	TitleMade      bool // Title was generated, not set by a user

	ConversationSummary *string
	SummaryThroughID    Ref
	SummaryThroughSeq   int64
	SummaryVersion      int
	SummaryTokens       int
	SummaryCovered      int `gorm:"column:summary_tokens_covered"`
	SummaryMadeFor      int
	NativeSummary       JSON // nativeSummary
	SummarizedCount     int
	SummaryCount        int
	LastSummarizedAt    *time.Time
	PromptState         JSON
	PromptRevision      int
	StandingCount       int   // rows of standing_instructions
	StoredBytes         int64 // of its messages

	Usage   core.UsageTotal `gorm:"embedded;embeddedPrefix:usage_"`
	Webhook Webhook         `gorm:"embedded;embeddedPrefix:webhook_"`

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

// TableName is the table's name.
func (Session) TableName() string { return "sessions" }

// SessionFrom returns the row of a session.
func SessionFrom(s core.Session) Session {
	row := Session{
		ID: string(s.ID), Owner: s.Owner, Agent: s.Agent, Model: s.Model, Title: s.Title,
		UserID: s.UserID, Source: string(s.Source), Timezone: s.Timezone, Instructions: s.Instructions,
		Metadata: jsonFrom(s.Metadata), Pinned: s.Pinned, Temporary: s.Temporary, Tags: EncodeJSON(s.Tags), MessageCount: s.MessageCount,
		LastSeq: s.LastSeq, LastEventSeq: s.LastEventSeq, Speakers: s.Speakers,
		CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt, ArchivedAt: s.ArchivedAt, TitledAt: s.TitledAt,
		ConversationSummary: s.ConversationSummary, SummaryThroughSeq: s.SummaryThroughSeq,
		SummaryVersion: s.SummaryVersion, SummaryTokens: s.SummaryTokens, SummaryCovered: s.SummaryCovered, SummaryMadeFor: s.SummaryMadeFor,
		SummarizedCount: s.SummarizedCount, SummaryCount: s.SummaryCount,
		LastSummarizedAt: s.LastSummarizedAt, NativeSummary: NativeFrom(s.NativeSummary), PromptState: jsonFrom(s.PromptState), PromptRevision: s.PromptRevision, StandingCount: s.StandingCount, StoredBytes: s.StoredBytes,
		Webhook: WebhookFrom(s.Webhook),
	}
	if s.SummaryThroughID != nil {
		row.SummaryThroughID = Ref(*s.SummaryThroughID)
	}
	return row
}

// Core returns the session of the row.
func (r Session) Core() core.Session {
	s := core.Session{
		ID: core.SessionID(r.ID), Owner: r.Owner, Agent: r.Agent, Model: r.Model, Title: r.Title,
		UserID: r.UserID, Source: core.Source(r.Source), Timezone: r.Timezone, Instructions: r.Instructions,
		Metadata: r.Metadata.rawMessage(), Pinned: r.Pinned, Temporary: r.Temporary, MessageCount: r.MessageCount,
		LastSeq: r.LastSeq, LastEventSeq: r.LastEventSeq, Speakers: r.Speakers, Slack: r.Slack,
		CreatedAt: toUTC(r.CreatedAt), UpdatedAt: toUTC(r.UpdatedAt), ArchivedAt: toUTCPtr(r.ArchivedAt), TitledAt: toUTCPtr(r.TitledAt),
		ConversationSummary: r.ConversationSummary, SummaryThroughSeq: r.SummaryThroughSeq,
		SummaryVersion: r.SummaryVersion, SummaryTokens: r.SummaryTokens, SummaryCovered: r.SummaryCovered, SummaryMadeFor: r.SummaryMadeFor,
		SummarizedCount: r.SummarizedCount, SummaryCount: r.SummaryCount,
		LastSummarizedAt: toUTCPtr(r.LastSummarizedAt), NativeSummary: nativeOf(r.NativeSummary), PromptState: r.PromptState.rawMessage(), PromptRevision: r.PromptRevision, StandingCount: r.StandingCount, StoredBytes: r.StoredBytes,
		Webhook: r.Webhook.Core(), Importing: r.Busy != "", Status: core.SessionIdle,
	}
	if r.SummaryThroughID != "" {
		id := core.MessageID(r.SummaryThroughID)
		s.SummaryThroughID = &id
	}
	if r.Tags.decodeInto(&s.Tags) != nil {
		s.Tags = nil
	}
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
