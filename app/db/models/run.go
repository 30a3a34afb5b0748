package models

import (
	"fmt"
	"time"

	"bobbin/app/core"
)

// Run is a row of runs.
type Run struct {
	ID              string `gorm:"primaryKey;type:uuid"`
	SessionID       string `gorm:"type:uuid"`
	Owner           string
	UserID          string
	QueueSeq        int64
	Status          string
	Agent           string
	AgentVersion    string
	Model           string
	Input           JSON
	Options         JSON   `gorm:"type:json"` // NULL = none
	UserMessageID   string `gorm:"type:uuid"`
	ClientMessageID Ref
	RequestHash     string
	Multitask       string
	Attempt         int
	LeaseOwner      string
	LeaseUntil      *time.Time // by the database's clock
	Deaths          int
	GiveBacks       int
	CancelRequested bool
	Partial         string
	State           JSON
	Context         JSON
	Error           JSON
	core.Usage      `gorm:"embedded"`
	AnswerID        Ref       `gorm:"type:uuid"`
	FirstEventSeq   int64     // number of its first event; 0 = not known
	LastWrite       string    // core.RunWrite.ID
	Webhook         Webhook   `gorm:"embedded;embeddedPrefix:webhook_"`
	CreatedAt       time.Time `gorm:"autoCreateTime:false"`
	StartedAt       *time.Time
	FinishedAt      *time.Time
}

// TableName is the table's name.
func (Run) TableName() string { return "runs" }

// RunFrom returns the row of a run.
func RunFrom(r core.Run) Run {
	return Run{
		ID: string(r.ID), SessionID: string(r.SessionID), Owner: r.Owner, UserID: r.User, QueueSeq: r.QueueSeq,
		Status: string(r.Status), Agent: r.Agent, AgentVersion: r.AgentVersion, Model: r.Model,
		Input: EncodeJSON(r.Input), Options: EncodeJSON(r.Options), UserMessageID: string(r.UserMessageID), ClientMessageID: Ref(r.ClientMessageID), RequestHash: r.RequestHash,
		Multitask: string(r.Multitask), Attempt: r.Attempt, LeaseOwner: r.LeaseOwner, LeaseUntil: r.LeaseUntil,
		Deaths: r.Deaths, GiveBacks: r.GiveBacks, CancelRequested: r.CancelRequested, Partial: r.Partial, State: jsonFrom(r.State), Context: jsonFrom(r.Context),
		Error: EncodeJSON(r.Error), Usage: r.Usage, AnswerID: Ref(r.AnswerID), FirstEventSeq: r.FirstEvent, Webhook: WebhookFrom(r.Webhook),
		CreatedAt: r.CreatedAt, StartedAt: r.StartedAt, FinishedAt: r.FinishedAt,
	}
}

// Core returns the run of the row.
func (r Run) Core() (core.Run, error) {
	run := core.Run{
		ID: core.RunID(r.ID), SessionID: core.SessionID(r.SessionID), Owner: r.Owner, User: r.UserID,
		QueueSeq: r.QueueSeq, Status: core.RunStatus(r.Status), Agent: r.Agent, AgentVersion: r.AgentVersion,
		Model: r.Model, UserMessageID: core.MessageID(r.UserMessageID), ClientMessageID: string(r.ClientMessageID), RequestHash: r.RequestHash,
		Multitask: core.Multitask(r.Multitask), Attempt: r.Attempt, LeaseOwner: r.LeaseOwner,
		LeaseUntil: toUTCPtr(r.LeaseUntil), Deaths: r.Deaths, GiveBacks: r.GiveBacks, CancelRequested: r.CancelRequested, Partial: r.Partial,
		State: r.State.rawMessage(), Context: r.Context.rawMessage(), Usage: r.Usage, AnswerID: core.MessageID(r.AnswerID), FirstEvent: r.FirstEventSeq, Webhook: r.Webhook.Core(),
		CreatedAt: toUTC(r.CreatedAt), StartedAt: toUTCPtr(r.StartedAt), FinishedAt: toUTCPtr(r.FinishedAt),
	}
	if err := r.Input.decodeInto(&run.Input); err != nil {
		return core.Run{}, fmt.Errorf("input of run %s: %w", r.ID, err)
	}
	if err := r.Options.decodeInto(&run.Options); err != nil {
		return core.Run{}, fmt.Errorf("options of run %s: %w", r.ID, err)
	}
	if err := r.Error.decodeInto(&run.Error); err != nil {
		return core.Run{}, fmt.Errorf("error of run %s: %w", r.ID, err)
	}
	return run, nil
}
