package models

import (
	"time"

	"bobbin/app/core"
)

// StandingInstruction is a row of standing_instructions.
type StandingInstruction struct {
	ID        string `gorm:"primaryKey;type:uuid"`
	SessionID string `gorm:"type:uuid"`
	Owner     string
	MessageID Ref   `gorm:"type:uuid"` // empty = added by hand
	Seq       int64 // of the message; by hand: of the last message at that time
	Number    int   // within its message: 1, 2, 3 …
	Text      string
	Language  string
	Topic     string
	Withdraws bool      // it takes an earlier one back
	Amends    bool      // it stands only if it finds an earlier one to change
	CreatedAt time.Time `gorm:"autoCreateTime:false"`
	EditedAt  *time.Time
	RemovedAt *time.Time
}

// TableName is the table's name.
func (StandingInstruction) TableName() string { return "standing_instructions" }

// Core returns the instruction of the row, without its state.
func (r StandingInstruction) Core() core.StandingInstruction {
	return core.StandingInstruction{
		ID: core.InstructionID(r.ID), SessionID: core.SessionID(r.SessionID), MessageID: core.MessageID(r.MessageID), Seq: r.Seq,
		Text: r.Text, Language: r.Language, Topic: r.Topic, Withdraws: r.Withdraws, Amends: r.Amends,
		CreatedAt: toUTC(r.CreatedAt), EditedAt: toUTCPtr(r.EditedAt), RemovedAt: toUTCPtr(r.RemovedAt),
	}
}
