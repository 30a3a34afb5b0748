package core

import (
	"encoding/json"
	"strings"
	"time"
)

// RunStatus is the state of a run.
type RunStatus string

// The states of a run.
const (
	RunQueued    RunStatus = "queued"
	RunRunning   RunStatus = "running"
	RunWaiting   RunStatus = "waiting" // for a decision
	RunSucceeded RunStatus = "succeeded"
	RunFailed    RunStatus = "failed"
	RunCanceled  RunStatus = "canceled"
)

// Ended reports whether the status is final.
func (s RunStatus) Ended() bool { return s == RunSucceeded || s == RunFailed || s == RunCanceled }

// Multitask says what a new message does while the session's run is active.
type Multitask string

// What a new message does to an active run.
const (
	MultitaskEnqueue   Multitask = "enqueue" // wait for its turn; the default
	MultitaskReject    Multitask = "reject"  // refuse with a conflict
	MultitaskInterrupt Multitask = "interrupt"
)

// Run is one passage of a user's message through an agent's graph. A run exists
// from the moment it is accepted; its message enters the log when it starts.
type Run struct {
	ID              RunID           `json:"id" gorm:"primaryKey;type:uuid"`
	SessionID       SessionID       `json:"session_id" gorm:"type:uuid"`
	Owner           string          `json:"-"`
	User            string          `json:"user_id,omitempty" gorm:"column:user_id"`
	QueueSeq        int64           `json:"queue_seq" doc:"Order of acceptance in the session."`
	Status          RunStatus       `json:"status" enum:"queued,running,waiting,succeeded,failed,canceled"`
	Agent           string          `json:"agent"`
	AgentVersion    string          `json:"agent_version,omitempty"`
	Model           string          `json:"model,omitempty" doc:"Requested with the message."`
	Input           RunInput        `json:"input" doc:"The message that the run answers. In events it has no content; 'message.created' and 'run.queued' do." gorm:"serializer:json;type:jsonb"`
	Options         *RunOptions     `json:"-" gorm:"serializer:json;type:json"` // nil = none
	UserMessageID   MessageID       `json:"user_message_id" gorm:"type:uuid"`   // assigned when the run is accepted
	ClientMessageID string          `json:"client_message_id,omitempty" gorm:"serializer:ref"`
	RequestHash     string          `json:"-"` // of the request with the idempotency key that ClientMessageID is; else empty
	Multitask       Multitask       `json:"multitask"`
	Attempt         int             `json:"attempt" doc:"More than 1 after a crash or an approval."`
	LeaseOwner      string          `json:"-"`
	LeaseUntil      *time.Time      `json:"-"`
	Deaths          int             `json:"-"` // processes that died while they executed it
	GiveBacks       int             `json:"-"` // attempts that gave it back because the database could not be reached
	CancelRequested bool            `json:"cancel_requested,omitempty"`
	Partial         string          `json:"-"`                                   // text on its way, saved now and then
	State           json.RawMessage `json:"-" gorm:"serializer:json;type:jsonb"` // what is not in the log; at most MaxRunState bytes
	Context         json.RawMessage `json:"context,omitempty" schema:"ContextReport" doc:"Of its last model call." gorm:"serializer:json;type:json"`
	Error           *RunError       `json:"error,omitempty" gorm:"serializer:json;type:jsonb"`   // of a failed run
	Usage           Usage           `json:"usage" gorm:"embedded"`                               // of the model calls for its answer; summaries are in the books
	AnswerID        MessageID       `json:"answer_id,omitempty" gorm:"serializer:ref;type:uuid"` // the last assistant message
	Webhook         *Webhook        `json:"webhook,omitempty" gorm:"-"`                          // where its end is told; nil = where the session says
	CreatedAt       time.Time       `json:"created_at" gorm:"autoCreateTime:false"`
	StartedAt       *time.Time      `json:"started_at,omitempty"`
	FinishedAt      *time.Time      `json:"finished_at,omitempty"`
	FirstEvent      int64           `json:"-" gorm:"column:first_event_seq"` // number of its first event; 0 = not known
	Resumed         bool            `json:"-" gorm:"-"`                      // just claimed after a decision: the attempts before left no text behind
	Approvals       []Approval      `json:"approvals,omitempty" doc:"What a waiting run waits for. The list of a session's runs has the decided ones as well, and leaves out arguments of more than 2,000 bytes. Not in events." gorm:"-"`
}

// RunsActive stands for all states before the end in a RunQuery.
const RunsActive RunStatus = "active"

// MaxListedArguments bounds the arguments of an approval in a RunList, in bytes.
const MaxListedArguments = 2000

// RunQuery asks for runs of all sessions.
type RunQuery struct {
	Status RunStatus `query:"status" enum:"active,queued,running,waiting,succeeded,failed,canceled" doc:"Only these; 'active': those that have not ended."`
	Agent  string    `query:"agent" doc:"Only those of this agent."`
	Error  string    `query:"error" doc:"Only those that failed with this code."`
	Oldest bool      `query:"order" enum:"asc,desc" word:"asc" default:"desc" doc:"'asc': the oldest first."`
	From   time.Time `query:"from" format:"day" example:"2026-11-01" doc:"A day in UTC or a time: only runs accepted at that time or later, and those that have not ended. By default a day ago."`
	PageQuery
}

// RunList is a page of runs of all sessions.
type RunList struct {
	Totals     RunTotals `json:"totals" doc:"Of all runs of the time, whatever their status, agent and error."`
	Items      []RunHead `json:"items"` // never nil
	NextCursor *string   `json:"next_cursor" schema:"NextCursor"`
}

// RunTotals are numbers of runs by their status.
type RunTotals struct {
	Queued    int `json:"queued"`
	Running   int `json:"running"`
	Waiting   int `json:"waiting"`
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
	Canceled  int `json:"canceled"`
}

// RunHead is what a list of all sessions shows of a run.
type RunHead struct {
	ID         RunID      `json:"id"`
	SessionID  SessionID  `json:"session_id"`
	Title      string     `json:"title" doc:"Of the session."`
	UserID     string     `json:"user_id,omitempty"`
	Status     RunStatus  `json:"status" enum:"queued,running,waiting,succeeded,failed,canceled"`
	Agent      string     `json:"agent"`
	Error      *RunError  `json:"error,omitempty" gorm:"serializer:json"` // of a failed run
	Prompt     int        `json:"prompt,omitempty" doc:"Tokens of the prompt of its last model call."`
	CreatedAt  time.Time  `json:"created_at"`
	StartedAt  *time.Time `json:"started_at,omitempty"`
	FinishedAt *time.Time `json:"finished_at,omitempty"`
	Approvals  []Approval `json:"approvals,omitempty" doc:"What a waiting run waits for. Arguments of more than 2,000 bytes are left out: get the run." gorm:"-"`
}

// StoredBytes returns what storing the run counts: what only it has.
func (r Run) StoredBytes() int64 { return r.Input.StoredBytes() + r.Options.StoredBytes() }

// Suspended reports whether the run was begun, had to wait for a decision, and is
// to go on: a queued run like others, but with messages in the log.
func (r Run) Suspended() bool { return r.Status == RunQueued && r.Attempt > 0 }

// Tenant returns the scope in which the run's own work happens.
func (r Run) Tenant() Tenant { return Tenant{Owner: r.Owner} }

// MaxRunState bounds Run.State, in bytes.
const MaxRunState = 4 << 10

// RunInput is the message that a run answers. From acceptance until the log has the
// message it is stored with the run, then it is read from the log. In events it has no
// content.
type RunInput struct {
	Content    string          `json:"content"`
	Parts      []Part          `json:"parts,omitempty"`
	Source     Source          `json:"source"`
	Author     string          `json:"author,omitempty"`
	Metadata   json.RawMessage `json:"metadata,omitempty" schema:"Metadata"`
	TokenCount int             `json:"token_count"`
	Edits      MessageID       `json:"edits,omitempty" doc:"The message of which this is a new version."`
	// After is the message behind which this one stands, on a branch of its own unless that is
	// the end of the path; AfterStart = it begins the conversation anew. Empty = it goes on
	// where the path ends.
	After MessageID `json:"after,omitempty" schema:"After"`
	// Regenerate says that the run answers a message that the log has already, on a
	// branch of its own: UserMessageID names it, and there is no content here.
	Regenerate bool       `json:"regenerate,omitempty"`
	DeletedAt  *time.Time `json:"deleted_at,omitempty" doc:"When the message was deleted; its content is removed."`
}

// AfterStart is the place before the first message of a session, as RunInput.After.
const AfterStart MessageID = "start"

// Emptied returns the input without its content.
func (in RunInput) Emptied() RunInput {
	return RunInput{Source: in.Source, Edits: in.Edits, After: in.After, Regenerate: in.Regenerate, DeletedAt: in.DeletedAt}
}

// StoredBytes returns what storing the input counts; nothing if it is empty.
func (in RunInput) StoredBytes() int64 {
	if in.Empty() {
		return 0
	}
	metadata, _ := EncodeJSON(in.Metadata) // a database may give it back with other spaces
	return Message{Content: in.Content, Parts: in.Parts, Metadata: metadata}.StoredBytes()
}

// Empty reports whether there is no content: the log has the message, or it was deleted.
func (in RunInput) Empty() bool { return in.Content == "" && len(in.Parts) == 0 }

// CheckRepeated returns KeyReused unless the request of the hash may be the one that began the run.
func (r Run) CheckRepeated(hash string) error {
	if hash != "" && r.RequestHash != "" && hash != r.RequestHash {
		return KeyReused("the run " + string(r.ID))
	}
	return nil
}

// SetInput takes the input from the message that the log has.
func (r *Run) SetInput(m Message) {
	r.Input.Content, r.Input.Parts, r.Input.Author, r.Input.Metadata = m.Content, m.Parts, m.Author, m.Metadata
	r.Input.TokenCount, r.Input.DeletedAt = m.TokenCount, m.DeletedAt
}

// UserMessage returns the message that enters the log when the run starts; its
// Seq and ParentID are still to be given.
func (r Run) UserMessage() Message {
	return Message{
		ID: r.UserMessageID, SessionID: r.SessionID, Owner: r.Owner, OnPath: true,
		Role: RoleUser, Content: r.Input.Content, Parts: r.Input.Parts, Status: MessageComplete,
		TokenCount: r.Input.TokenCount, Source: r.Input.Source, Author: r.Input.Author, AuthorID: r.User,
		RunID: r.ID, ClientMessageID: r.ClientMessageID, Metadata: r.Input.Metadata, CreatedAt: r.CreatedAt, DeletedAt: r.Input.DeletedAt,
	}
}

// RunError says why a run failed, in words that may be shown.
type RunError struct {
	Code    string `json:"code" example:"model_error"` // a stable word: context_floor, model_auth, model_timeout, step_limit, internal …
	Message string `json:"message" doc:"A sentence for people."`
}

// Outcome is what became of a run.
type Outcome struct {
	Run    Run
	Answer *Message // nil = it has none, or it is to be loaded
}

// Accepted is the answer to a message: the run is committed.
type Accepted struct {
	Run      Run
	Session  Session  // as it is after the commit; empty unless the run has started with it
	Message  Message  // the user's message; Seq is 0 while the run is queued
	Repeated bool     // the client_message_id was known: this is the run of the first time
	Instead  bool     // it closed what the session's run waited for: that run is to be claimed and ends
	Events   []Event  // written with it, to be published after the commit
	Ignored  []string // keys of lenient options that were left out
	Known    any      // for RunWrite.Known; nil unless the run has started with it
}

// RunWrite is everything one step of a run stores, in one transaction. A write
// whose Attempt is not the run's current one, or whose run is no longer running,
// is refused with ErrStale and stores nothing. One that is tried again, as its answer
// got lost, counts once: it is known by its ID as long as it is the run's last.
type RunWrite struct {
	ID         string // a UUID, the same for each try; empty = it is tried once
	RunID      RunID
	SessionID  SessionID
	Attempt    int
	Messages   []Message       // appended in this order; one whose ID is in the log already is left as it is
	Events     []Event         // besides the message.created of each new message
	ModelCalls []ModelCall     // for the books
	Usage      Usage           // added to the run's
	State      json.RawMessage // replaces Run.State; nil = leave
	Context    json.RawMessage // replaces Run.Context; nil = leave
	Setup      *PromptSetup    // to which thoughts of Messages are bound; stored with the session, unless it is there already; nil = leave
	Next       MessageID       // that the attempt writes next, where Run.DraftID does not tell; replaces Run.Partial
	Wait       *RunWait        // lets the run wait with this write, not together with End
	End        *RunEnd         // ends the run with this write

	Known any // of what came before: Accepted.Known, Claimed.Known or Written.Known; the log has none of Messages; nil = the store looks
}

// RunWait is what a run waits for. A run that is to be canceled does not wait: such a
// write is refused with ErrCanceled.
type RunWait struct {
	Approvals []Approval    // at least one; one whose call was asked for already stays as it is
	Expiry    time.Duration // after it nobody's answer counts any more; 0 = never
}

// RunEnd is how a run ends.
type RunEnd struct {
	Status   RunStatus // an ended one
	Error    *RunError // with RunFailed; if the provider refused the prompt, the user message gets its mark
	AnswerID MessageID
}

// Written is what a RunWrite came to.
type Written struct {
	Messages []Message // as stored, with their Seq
	Events   []Event   // with their numbers, to be published after the commit
	Run      Run       // as stored
	// Known is for the next write, by which the store need not look at the session again; nil = somebody else has written
	// to it since what RunWrite.Known is from.
	Known any
	// MoreQueued says that later runs of the session were accepted; they may have ended since.
	MoreQueued bool
}

// ToolExecution is written before a tool starts that must not be run twice. After
// a crash, no row means run it; a row without a result means "interrupted,
// outcome unknown".
type ToolExecution struct {
	RunID      RunID `gorm:"primaryKey"`
	SessionID  SessionID
	Owner      string
	CallID     string `gorm:"primaryKey"`
	Attempt    int
	Tool       string
	StartedAt  time.Time
	FinishedAt *time.Time
}

// AcceptRun is a message that wants to be answered.
type AcceptRun struct {
	SessionID       SessionID
	User            string
	Agent           string
	AgentVersion    string
	Model           string
	SessionAgent    *SessionAgent // that Agent and Model follow from: ErrStale if the session has another; nil = any
	Input           RunInput
	After           MessageID // as RunInput.After, also in the middle of a tool call and its results: the run begins behind them
	Answers         MessageID // with Input.Regenerate: the question, or any message of its turn
	ClientMessageID string
	RequestHash     string // as Run.RequestHash
	Multitask       Multitask
	Options         *RunOptions // nil = none
	Webhook         *Webhook    // nil = the session's
	Worker          string      // who executes it if it can start at once
	MaxQueued       int         // most queued runs of the session; 0 = no limit
	MaxOwned        int         // most runs of the owner that are queued or at work, this one included; 0 = no limit
	MaxOfUser       int         // the same of User; 0 = no limit
	Results         AnswerCalls // of calls that the session's run waits for, which ends with them; without results = none
}

// SessionAgent is the agent of a session, and its model if it has one of its own.
type SessionAgent struct{ Agent, Model string }

// Claimed is a run that a worker may execute now.
type Claimed struct {
	Run     Run
	Session Session
	Message Message // the user's message, in the log
	Events  []Event // written with it, to be published
	Known   any     // for RunWrite.Known
}

// TakeOver says which runs that nobody works on a worker takes over.
type TakeOver struct {
	Worker string
	Lapsed bool // also runs whose lease has passed; otherwise those of earlier starts of the replica and those given back
	Deaths int  // runs with so many deaths, the one that the take-over finds included
	Later  bool // that death is counted by CountDeath, when the run begins
	Limit  int  // most runs
}

// RunLease is how long a run belongs to the process that claimed it, unless the process
// renews its lease.
const RunLease = 30 * time.Second

// LeaseResult is what came of asking for a lease.
type LeaseResult int

// The answers to somebody who asks for a lease.
const (
	GrantRefused   LeaseResult = iota // another one has it
	GrantGiven                        // nobody had it, or the asker himself
	GrantTakenOver                    // another one had it, and let its time pass
)

// OK reports whether the asker has the lease.
func (g LeaseResult) OK() bool { return g != GrantRefused }

// QueueStats is what waits for its turn, in the whole database.
type QueueStats struct {
	Queued int
	Oldest time.Duration // since the oldest of them was accepted
}

// NATSStats is the state of the connection between replicas, and what has happened to it.
type NATSStats struct {
	Connected  bool
	Routes     int    // connections to other replicas, of their own cluster
	Reconnects uint64 // to the server
	Slow       uint64 // times that messages arrived faster than they were read, and some were lost
	In, Out    uint64 // messages
}

// WorkersOf returns how the workers of the same replica begin, those of its earlier
// starts among them.
func WorkersOf(worker string) (prefix string) {
	if i := strings.LastIndexByte(worker, '/'); i >= 0 {
		return worker[:i+1]
	}
	return worker + "/"
}
