package core

import (
	"slices"
	"time"
)

// ApprovalMode says when a person must agree before a tool starts.
type ApprovalMode string

// When a person must agree.
const (
	ApprovalAlways ApprovalMode = "always" // to every call
	ApprovalFirst  ApprovalMode = "first"  // until one call of the tool was approved in the session
)

// ApprovalStatus is what became of a question.
type ApprovalStatus string

// What becomes of a question. Only an open one can change.
const (
	ApprovalOpen     ApprovalStatus = "open"
	ApprovalApproved ApprovalStatus = "approved"
	ApprovalDenied   ApprovalStatus = "denied"
	ApprovalExpired  ApprovalStatus = "expired" // nobody answered in time
	ApprovalClosed   ApprovalStatus = "closed"  // it needs no answer any more; the comment says why
)

// Why a question needs no answer any more, and what is said of one that nobody
// answered: the comments of the last two.
const (
	ApprovalInstead  = "the user wrote instead"
	ApprovalCanceled = "the run was canceled"
	ApprovalTooLate  = "nobody answered in time"
)

// Approval is the question whether a tool may start.
type Approval struct {
	ID          ApprovalID     `json:"id"`
	RunID       RunID          `json:"run_id"`
	SessionID   SessionID      `json:"session_id"`
	ToolCallID  string         `json:"tool_call_id"`
	Tool        string         `json:"tool"`
	Arguments   string         `json:"arguments"` // the raw text that the model wrote
	Mode        ApprovalMode   `json:"mode"`
	Status      ApprovalStatus `json:"status"`
	Comment     string         `json:"comment,omitempty"`
	DecidedBy   string         `json:"decided_by,omitempty"` // the user, else the owner; empty = nobody
	RequestedAt time.Time      `json:"requested_at"`
	ExpiresAt   *time.Time     `json:"expires_at,omitempty"` // by the database's clock; nil = never
	DecidedAt   *time.Time     `json:"decided_at,omitempty"`
}

// Refusal returns what the model reads in place of the result of a call that was not
// approved.
func (a Approval) Refusal() string {
	if a.Comment == "" {
		return "not approved"
	}
	return "not approved: " + a.Comment
}

// ApprovalOf returns the question that decides about a call, and false if there is
// none: its own, or that of another one of the calls that are open with it, if the
// tool is asked for once.
func ApprovalOf(asked []Approval, open []ToolCall, call ToolCall) (Approval, bool) {
	for _, a := range asked {
		if a.ToolCallID == call.ID {
			return a, true
		}
	}
	for _, a := range asked {
		with := func(c ToolCall) bool { return c.ID == a.ToolCallID }
		if a.Mode == ApprovalFirst && a.Tool == call.Name && slices.ContainsFunc(open, with) {
			return a, true
		}
	}
	return Approval{}, false
}

// ApprovalDecision is a person's answer to a question.
type ApprovalDecision struct {
	Approve bool
	Comment string
	By      string // who answers
}

// Status returns what the question becomes.
func (d ApprovalDecision) Status() ApprovalStatus {
	if d.Approve {
		return ApprovalApproved
	}
	return ApprovalDenied
}

// Decided is what an answer came to.
type Decided struct {
	Approval Approval
	Run      Run     // as it is then: Suspended once all its questions are answered
	Events   []Event // written with it, to be published after the commit
}
