package models

import (
	"fmt"
	"time"

	"bobbin/app/core"
)

// Message is a row of messages.
type Message struct {
	ID              string `gorm:"primaryKey;type:uuid"`
	SessionID       string `gorm:"type:uuid"`
	Owner           string
	Seq             int64
	ParentID        Ref `gorm:"type:uuid"`
	OnPath          bool
	Role            string
	Content         string
	Parts           JSON
	Status          string
	ToolCalls       JSON
	ToolCallID      string
	ToolName        string
	Model           string
	FinishReason    string
	TokenCount      int
	Pinned          bool
	Source          string
	Author          string
	AuthorID        string
	Named           bool // prompts show the author's name
	RunID           Ref  `gorm:"type:uuid"`
	ClientMessageID Ref
	OriginID        Ref `gorm:"type:uuid"` // of a fork: the message it is a copy of
	Metadata        JSON
	CreatedAt       time.Time `gorm:"autoCreateTime:false"`
	DeletedAt       *time.Time
	Feedback        JSON
	RevisedAt       *time.Time
}

// MessageFrom returns the row of a message.
func MessageFrom(m core.Message) Message {
	return Message{
		ID: string(m.ID), SessionID: string(m.SessionID), Owner: m.Owner, Seq: m.Seq, ParentID: Ref(m.ParentID),
		OnPath: m.OnPath, Role: string(m.Role), Content: m.Content, Parts: EncodeJSON(m.Parts),
		Status: string(m.Status), ToolCalls: EncodeJSON(m.ToolCalls), ToolCallID: m.ToolCallID, ToolName: m.ToolName,
		Model: m.Model, FinishReason: string(m.FinishReason), TokenCount: m.TokenCount, Pinned: m.Pinned,
		Source: string(m.Source), Author: m.Author, AuthorID: m.AuthorID, Named: m.Named, RunID: Ref(m.RunID), ClientMessageID: Ref(m.ClientMessageID),
		Metadata: jsonFrom(m.Metadata), CreatedAt: m.CreatedAt, DeletedAt: m.DeletedAt, Feedback: EncodeJSON(m.Feedback), RevisedAt: m.RevisedAt,
	}
}

// Core returns the message of the row.
func (r Message) Core() (core.Message, error) {
	m := core.Message{
		ID: core.MessageID(r.ID), SessionID: core.SessionID(r.SessionID), Owner: r.Owner, Seq: r.Seq,
		ParentID: core.MessageID(r.ParentID), OnPath: r.OnPath, Role: core.Role(r.Role), Content: r.Content,
		Status: core.MessageStatus(r.Status), ToolCallID: r.ToolCallID, ToolName: r.ToolName,
		Model: r.Model, FinishReason: core.FinishReason(r.FinishReason), TokenCount: r.TokenCount, Pinned: r.Pinned,
		Source: core.Source(r.Source), Author: r.Author, AuthorID: r.AuthorID, Named: r.Named, RunID: core.RunID(r.RunID),
		ClientMessageID: string(r.ClientMessageID), Metadata: r.Metadata.rawMessage(),
		CreatedAt: toUTC(r.CreatedAt), DeletedAt: toUTCPtr(r.DeletedAt), RevisedAt: toUTCPtr(r.RevisedAt),
	}
	if err := r.Parts.decodeInto(&m.Parts); err != nil {
		return core.Message{}, fmt.Errorf("parts of message %s: %w", r.ID, err)
	}
	if err := r.ToolCalls.decodeInto(&m.ToolCalls); err != nil {
		return core.Message{}, fmt.Errorf("tool calls of message %s: %w", r.ID, err)
	}
	if err := r.Feedback.decodeInto(&m.Feedback); err != nil {
		return core.Message{}, fmt.Errorf("feedback on message %s: %w", r.ID, err)
	}
	return m, nil
}
