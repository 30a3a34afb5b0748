package apitest

import (
	"context"
	"encoding/json"
	"iter"
	"sync"
	"time"

	"bobbin/app/core"
)

// IDs of the data in a backend.
const (
	SessionID     = core.SessionID("01920000-0000-7000-8000-000000000001")
	UserID        = core.MessageID("01920000-0000-7000-8000-000000000011")
	AnswerID      = core.MessageID("01920000-0000-7000-8000-000000000012")
	QueuedID      = core.MessageID("01920000-0000-7000-8000-000000000013")
	RunID         = core.RunID("01920000-0000-7000-8000-000000000021")
	NextRunID     = core.RunID("01920000-0000-7000-8000-000000000022")
	DeliveryID    = core.DeliveryID("01920000-0000-7000-8000-000000000051")
	MemoryID      = core.MemoryID("01920000-0000-7000-8000-000000000041")
	BlobID        = core.BlobID("01920000-0000-7000-8000-000000000041")
	SummaryID     = core.SummaryID("01920000-0000-7000-8000-000000000031")
	InstructionID = core.InstructionID("01920000-0000-7000-8000-000000000061")
	MissingID     = "01920000-0000-7000-8000-00000000dead"
)

// Time is the time of everything.
func Time() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 678900000, time.UTC) }

// Call is one call to the backend.
type Call struct {
	Method string // such as "Send"
	Scope  core.Tenant
	Args   []any
}

// Hook runs before a method answers; its error replaces the answer.
type Hook func(ctx context.Context) error

// Backend answers for every part. Its fields are what it answers, and are set
// before it is used; the methods are safe for concurrent use.
type Backend struct {
	Session   core.Session
	Messages  []core.Message
	Run       core.Run // the ended run
	Queued    core.Run
	Summary   core.Summary
	Report    core.ContextReport
	Agent     core.Agent
	Memory    core.Memory
	Events    []core.Event // of Run
	Accepted  core.Run     // what Send answers
	Hooks     map[string]Hook
	Streaming func(ctx context.Context, from core.Cursor) iter.Seq2[core.Event, error] // instead of Events

	mu    sync.Mutex
	calls []Call // guarded by mu
}

// New returns a backend that holds one of everything.
func New() *Backend {
	now := Time()
	summary := "They greeted each other."
	through := UserID
	usage := core.Usage{InputTokens: 12, OutputTokens: 3}
	run := core.Run{
		ID: RunID, SessionID: SessionID, QueueSeq: 1, Status: core.RunSucceeded, Agent: "assistant", AgentVersion: "v1",
		Input: core.RunInput{Content: "Hello", Source: core.SourceAPI, TokenCount: 5}, UserMessageID: UserID, ClientMessageID: "c-1",
		Multitask: core.MultitaskEnqueue, Attempt: 1, Usage: usage, AnswerID: AnswerID, CreatedAt: now, StartedAt: &now, FinishedAt: &now,
	}
	queued := run
	queued.ID, queued.Status, queued.QueueSeq, queued.UserMessageID, queued.ClientMessageID = NextRunID, core.RunQueued, 2, QueuedID, "c-2"
	queued.Attempt, queued.Usage, queued.AnswerID, queued.StartedAt, queued.FinishedAt = 0, core.Usage{}, "", nil, nil
	queued.Input.Content = "And then?"
	running := run
	running.Status, running.FinishedAt, running.AnswerID, running.Usage = core.RunRunning, nil, "", core.Usage{}
	return &Backend{
		Session: core.Session{
			ID: SessionID, Agent: "assistant", Title: "Greetings", UserID: "u-1", Source: core.SourceAPI, Timezone: "Europe/Vienna",
			Metadata: json.RawMessage(`{"team":"a"}`), MessageCount: 2, SummarizedCount: 1, SummaryCount: 1, ConversationSummary: &summary,
			SummaryThroughID: &through, SummaryVersion: 1, LastSummarizedAt: &now, CreatedAt: now, UpdatedAt: now, LastEventSeq: 4,
			Status: core.SessionWaiting, ActiveRunID: RunID, OpenApprovals: 1,
		},
		Messages: sampleMessages(run),
		Run:      run, Queued: queued, Accepted: running,
		Summary: core.Summary{
			ID: SummaryID, SessionID: SessionID, Version: 1, Kind: core.SummaryRolling, State: core.SummaryActive, Content: summary,
			FromID: UserID, ThroughID: UserID, FromSeq: 1, ThroughSeq: 1, MessagesCovered: 1, MessagesAdded: 1,
			TokensBefore: 5, TokensAfter: 4, TokenCount: 4, Model: "demo", Strategy: "llm", Trigger: "manual", Duration: 1500000, CreatedAt: now, ActivatedAt: &now,
		},
		Report: sampleReport(), Agent: sampleAgent(), Memory: sampleMemory(),
		Events: sampleEvents(run), Hooks: map[string]Hook{},
	}
}

// Calls returns the calls so far.
func (b *Backend) Calls() []Call {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]Call(nil), b.calls...)
}

// recordCall records a call and runs its hook.
func (b *Backend) recordCall(ctx context.Context, method string, tenant core.Tenant, args ...any) error {
	b.mu.Lock()
	b.calls = append(b.calls, Call{Method: method, Scope: tenant, Args: args})
	b.mu.Unlock()
	if hook := b.Hooks[method]; hook != nil {
		return hook(ctx)
	}
	return nil
}

// missing returns the error for an id that is not the one that the backend holds.
func missing[T ~string](what string, id, known T) error {
	if id == known {
		return nil
	}
	return core.Errorf(core.ErrNotFound, "%s %s does not exist", what, id)
}
