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
	ApprovalNever  ApprovalMode = "never"  // nobody must, also where a person must otherwise
)

// ApprovalKind says what a question asks for.
type ApprovalKind string

// The kinds of questions.
const (
	KindApproval   ApprovalKind = "approval"    // whether a tool may start
	KindClientTool ApprovalKind = "client_tool" // the result of a call that the client of the run executes
)

// ApprovalStatus is what became of a question.
type ApprovalStatus string

// What becomes of a question. Only an open one can change, and an approved one of a tool that has changed.
const (
	ApprovalOpen     ApprovalStatus = "open"
	ApprovalApproved ApprovalStatus = "approved"
	ApprovalDenied   ApprovalStatus = "denied"
	ApprovalAnswered ApprovalStatus = "answered" // the call has a result that the tool did not make
	ApprovalExpired  ApprovalStatus = "expired"  // nobody answered in time
	ApprovalClosed   ApprovalStatus = "closed"   // it needs no answer any more; the comment says why
)

// Why a question needs no answer any more, and what is said of one that nobody
// answered: the comments of the last two.
const (
	ApprovalInstead  = "the user wrote instead"
	ApprovalCanceled = "the run was canceled"
	ApprovalChanged  = "the tool has changed since; there is a new question"
	ApprovalTooLate  = "nobody answered in time"
)

// Approval is the question whether a tool may start, or what its result is.
type Approval struct {
	ID          ApprovalID     `json:"id" gorm:"primaryKey"`
	Kind        ApprovalKind   `json:"kind,omitempty" enum:"approval,client_tool" doc:"'approval': may the tool start? 'client_tool': what is the result of the call? Absent in events of earlier versions, which are approvals."`
	RunID       RunID          `json:"run_id"`
	SessionID   SessionID      `json:"session_id"`
	Owner       string         `json:"-"`
	ToolCallID  string         `json:"tool_call_id" gorm:"column:call_id"`
	Tool        string         `json:"tool"`
	Arguments   string         `json:"arguments" doc:"As the model wrote them, normally JSON."`
	Edited      string         `json:"edited_arguments,omitempty" doc:"With which the tool starts instead, as JSON." gorm:"column:edited_arguments"`
	Definition  string         `json:"-"` // hash of the tool's definition, that alone was asked for; empty for clients' tools
	Mode        ApprovalMode   `json:"mode" enum:"always,first" doc:"always: every call needs approval; first: until one was approved in the session."`
	Status      ApprovalStatus `json:"status" enum:"open,approved,denied,answered,expired,closed" doc:"'answered': it has a result that no tool of the server made."`
	Comment     string         `json:"comment,omitempty" doc:"Of the decision, or why none was needed."`
	DecidedBy   string         `json:"decided_by,omitempty" doc:"The user, or else the owner."`
	RequestedAt time.Time      `json:"requested_at"`
	ExpiresAt   *time.Time     `json:"expires_at,omitempty" doc:"Afterwards it counts as not approved; absent = never."`
	DecidedAt   *time.Time     `json:"decided_at,omitempty"`
	Result      string         `json:"-"` // of an answered call; its message has it
	Failed      bool           `json:"is_error,omitempty" doc:"Of an answered call: it failed."`
}

// Refusal returns what the model reads in place of the result of a call that was not
// approved, or that its client did not answer.
func (a Approval) Refusal() string {
	text := "not approved"
	if a.Kind == KindClientTool {
		text = "no result"
	}
	if a.Comment != "" {
		text += ": " + a.Comment
	}
	return text
}

// Decide returns the open question as the decision makes it. ErrInvalid if it is no answer to
// a question of its kind.
func (a Approval) Decide(d ApprovalDecision) (Approval, error) {
	switch {
	case a.Kind == KindClientTool && (d.Approve || d.Respond != ""):
		return a, Errorf(ErrInvalid, "the tool %s is executed by the client of the run: answer with its result, or deny the call", Clip(a.Tool, maxShownTool))
	case a.Kind != KindClientTool && d.Result != nil:
		return a, Errorf(ErrInvalid, "the tool %s is executed by the server: approve or deny the call, or respond in its place", Clip(a.Tool, maxShownTool))
	}
	a.Status, a.Comment, a.DecidedBy = d.Status(), d.Comment, d.By
	a.Edited, a.Failed = d.Arguments, d.IsError
	if a.Result = d.Respond; d.Result != nil {
		a.Result = *d.Result
	}
	return a, nil
}

// maxShownTool bounds the name of a tool in an error.
const maxShownTool = 64

// ApprovalOf returns the question that decides about a call, and false if there is
// none: its own, or that of another one of the calls that are open with it, if the
// tool is asked for once. A question that was answered in place of its tool decides about
// its own call alone.
func ApprovalOf(asked []Approval, open []ToolCall, call ToolCall) (Approval, bool) {
	for _, a := range slices.Backward(asked) { // the newest counts: a tool that has changed is asked for again
		if a.ToolCallID == call.ID {
			return a, true
		}
	}
	for _, a := range slices.Backward(asked) {
		with := func(c ToolCall) bool { return c.ID == a.ToolCallID }
		if a.Mode == ApprovalFirst && a.Status != ApprovalAnswered && a.Tool == call.Name && slices.ContainsFunc(open, with) {
			return a, true
		}
	}
	return Approval{}, false
}

// ApprovalDecision is the answer to a question: Approve, Respond, Result, or none of them to
// deny the call.
type ApprovalDecision struct {
	Approve   bool
	Arguments string  // with Approve: a JSON object in place of the model's arguments; empty = as the model wrote them
	Respond   string  // what the model reads in place of the result: the tool does not start
	Result    *string // of a call that the client executes
	IsError   bool    // with Result: the call failed
	Comment   string
	By        string // who answers, as a surface in the process knows it; empty = the caller
}

// Status returns what the question becomes.
func (d ApprovalDecision) Status() ApprovalStatus {
	switch {
	case d.Result != nil, d.Respond != "":
		return ApprovalAnswered
	case d.Approve:
		return ApprovalApproved
	}
	return ApprovalDenied
}

// CallResult is the result of a call of a client's tool.
type CallResult struct {
	ToolCallID string
	Result     string
	IsError    bool // the call failed
}

// AnswerCalls are the results of calls that a run of the session waits for.
type AnswerCalls struct {
	SessionID SessionID
	Results   []CallResult // each call once
	By        string       // who answers
	Options   *RunOptions  // of the run from there on, if a result is new; nil = as they are
}

// Decided is what an answer came to.
type Decided struct {
	Approval Approval
	Run      Run     // as it is then: Suspended once all its questions are answered
	Events   []Event // written with it, to be published after the commit
}
