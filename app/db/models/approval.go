package models

import (
	"cmp"
	"time"

	"bobbin/app/core"
)

// Approval is a row of approvals.
type Approval struct {
	ID          string `gorm:"primaryKey"`
	RunID       string
	SessionID   string
	Owner       string
	CallID      string
	Tool        string
	Arguments   string
	Edited      string `gorm:"column:edited_arguments"`
	Kind        string
	Result      string
	Failed      bool
	Definition  string
	Mode        string
	Status      string
	Comment     string
	DecidedBy   string
	RequestedAt time.Time
	ExpiresAt   *time.Time // by the database's clock
	DecidedAt   *time.Time
}

// ApprovalFrom returns the row of an approval in a session of the owner.
func ApprovalFrom(owner string, a core.Approval) Approval {
	return Approval{
		ID: string(a.ID), RunID: string(a.RunID), SessionID: string(a.SessionID), Owner: owner, CallID: a.ToolCallID,
		Tool: a.Tool, Arguments: a.Arguments, Edited: a.Edited, Kind: string(cmp.Or(a.Kind, core.KindApproval)), Result: a.Result, Failed: a.Failed,
		Definition: a.Definition, Mode: string(a.Mode), Status: string(a.Status), Comment: a.Comment,
		DecidedBy: a.DecidedBy, RequestedAt: a.RequestedAt, ExpiresAt: a.ExpiresAt, DecidedAt: a.DecidedAt,
	}
}

// Core returns the approval of the row.
func (r Approval) Core() core.Approval {
	return core.Approval{
		ID: core.ApprovalID(r.ID), RunID: core.RunID(r.RunID), SessionID: core.SessionID(r.SessionID), ToolCallID: r.CallID,
		Tool: r.Tool, Arguments: r.Arguments, Edited: r.Edited, Kind: core.ApprovalKind(r.Kind), Result: r.Result, Failed: r.Failed,
		Definition: r.Definition, Mode: core.ApprovalMode(r.Mode), Status: core.ApprovalStatus(r.Status),
		Comment: r.Comment, DecidedBy: r.DecidedBy,
		RequestedAt: toUTC(r.RequestedAt), ExpiresAt: toUTCPtr(r.ExpiresAt), DecidedAt: toUTCPtr(r.DecidedAt),
	}
}
