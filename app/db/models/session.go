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
	MessageCount int
	LastSeq      int64
	LastEventSeq int64
	LastQueueSeq int64
	CreatedAt    time.Time `gorm:"autoCreateTime:false"`
	UpdatedAt    time.Time `gorm:"autoUpdateTime:false"`
	ArchivedAt   *time.Time
	TitledAt     *time.Time

	TitleMessageID Ref  // the question of which the last title was made that was not set
	TitleMade      bool // Title is that one

	ConversationSummary *string
	SummaryThroughID    Ref
	SummaryThroughSeq   int64
	SummaryVersion      int
	SummaryTokens       int
	SummarizedCount     int
	SummaryCount        int
	LastSummarizedAt    *time.Time
	PromptState         JSON
	PromptRevision      int

	Webhook Webhook `gorm:"embedded;embeddedPrefix:webhook_"`

	SummaryLeaseOwner   string // who is making a summary; Sessions.LeaseSummary
	SummaryLeaseUntil   *time.Time
	SummaryFailures     int // of the summary model, in a row
	SummaryFailure      string
	SummaryBreakerUntil *time.Time
}

// TableName is the table's name.
func (Session) TableName() string { return "sessions" }

// SessionFrom returns the row of a session.
func SessionFrom(s core.Session) Session {
	row := Session{
		ID: string(s.ID), Owner: s.Owner, Agent: s.Agent, Model: s.Model, Title: s.Title,
		UserID: s.UserID, Source: string(s.Source), Timezone: s.Timezone, Instructions: s.Instructions,
		Metadata: jsonFrom(s.Metadata), MessageCount: s.MessageCount,
		LastSeq: s.LastSeq, LastEventSeq: s.LastEventSeq,
		CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt, ArchivedAt: s.ArchivedAt, TitledAt: s.TitledAt,
		ConversationSummary: s.ConversationSummary, SummaryThroughSeq: s.SummaryThroughSeq,
		SummaryVersion: s.SummaryVersion, SummaryTokens: s.SummaryTokens,
		SummarizedCount: s.SummarizedCount, SummaryCount: s.SummaryCount,
		LastSummarizedAt: s.LastSummarizedAt, PromptState: jsonFrom(s.PromptState), PromptRevision: s.PromptRevision,
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
		Metadata: r.Metadata.raw(), MessageCount: r.MessageCount,
		LastSeq: r.LastSeq, LastEventSeq: r.LastEventSeq,
		CreatedAt: utc(r.CreatedAt), UpdatedAt: utc(r.UpdatedAt), ArchivedAt: utcPtr(r.ArchivedAt), TitledAt: utcPtr(r.TitledAt),
		ConversationSummary: r.ConversationSummary, SummaryThroughSeq: r.SummaryThroughSeq,
		SummaryVersion: r.SummaryVersion, SummaryTokens: r.SummaryTokens,
		SummarizedCount: r.SummarizedCount, SummaryCount: r.SummaryCount,
		LastSummarizedAt: utcPtr(r.LastSummarizedAt), PromptState: r.PromptState.raw(), PromptRevision: r.PromptRevision,
		Webhook: r.Webhook.Core(),
	}
	if r.SummaryThroughID != "" {
		id := core.MessageID(r.SummaryThroughID)
		s.SummaryThroughID = &id
	}
	return s
}
