package chat

import (
	"context"
	"iter"
	"log/slog"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// sessionStore is what the use cases need of sessions in storage.
type sessionStore interface {
	Create(ctx context.Context, s core.Session) (core.Session, error)
	Get(ctx context.Context, scope core.Scope, id core.SessionID) (core.Session, error)
	Update(ctx context.Context, scope core.Scope, id core.SessionID, p core.SessionPatch) (core.Session, []core.Event, error)
	Archive(ctx context.Context, scope core.Scope, id core.SessionID) error
}

// runStore is what the use cases need of runs in storage.
type runStore interface {
	Accept(ctx context.Context, scope core.Scope, in core.AcceptRun) (core.Accepted, error)
	RequestCancel(ctx context.Context, scope core.Scope, id core.RunID) (core.Run, []core.Event, error)
	Decide(ctx context.Context, scope core.Scope, run core.RunID, id core.ApprovalID, d core.ApprovalDecision) (core.Decided, error)
	Claim(ctx context.Context, session core.SessionID, worker string) (core.Claimed, error)
	Get(ctx context.Context, scope core.Scope, id core.RunID) (core.Run, error)
	Active(ctx context.Context, scope core.Scope, session core.SessionID) (core.Run, error)
}

// branchStore is what the use cases need of branches in storage.
type branchStore interface {
	Select(ctx context.Context, scope core.Scope, session core.SessionID, id core.MessageID) (core.Session, []core.Event, error)
	Pin(ctx context.Context, scope core.Scope, session core.SessionID, id core.MessageID, pinned bool) (core.Message, []core.Event, error)
	Delete(ctx context.Context, scope core.Scope, session core.SessionID, id core.MessageID) ([]core.Event, error)
	Fork(ctx context.Context, scope core.Scope, in core.ForkSession) (core.Session, error)
}

// messageStore reads the log.
type messageStore interface {
	Get(ctx context.Context, scope core.Scope, session core.SessionID, id core.MessageID) (core.Message, error)
}

// eventStore knows the numbers of events.
type eventStore interface {
	// After returns up to limit events with a greater number, in order.
	After(ctx context.Context, session core.SessionID, after int64, limit int) ([]core.Event, error)
	Last(ctx context.Context, scope core.Scope, session core.SessionID) (int64, error)
	// FirstOfRun returns the number of the run's oldest event that is kept; 0 = none.
	FirstOfRun(ctx context.Context, session core.SessionID, run core.RunID) (int64, error)
}

// eventFeed carries events to those who watch.
type eventFeed interface {
	Publish(ctx context.Context, events []core.Event)
	Watch(ctx context.Context, scope core.Scope, session core.SessionID, from core.From) iter.Seq2[core.Event, error]
}

// worker executes runs in this process.
type worker interface {
	Start(run core.Run)
	Cancel(run core.RunID) bool
}

// agentCatalog is the configured agents. Get returns ErrNotFound for others.
type agentCatalog interface {
	Get(name string) (core.Agent, error)
	List() []core.Agent
}

// modelRegistry finds language models; an empty name is the default model.
type modelRegistry interface {
	Get(name string) (llm.Model, error)
}

// counter counts the tokens of a message for the log.
type counter interface {
	Message(m core.Message) int
}

// fileAttacher knows the images and files that were uploaded.
type fileAttacher interface {
	// Attach returns the parts of a message as they are stored.
	Attach(ctx context.Context, scope core.Scope, asked []core.Part) ([]core.Part, error)
}

// contextKeeper knows what a session's prompts are made of.
type contextKeeper interface {
	Report(ctx context.Context, scope core.Scope, id core.SessionID) (core.ContextReport, error)
	Prompt(ctx context.Context, scope core.Scope, id core.SessionID) (core.PromptView, error)
	Summarize(ctx context.Context, scope core.Scope, id core.SessionID, focus string) (core.Summary, error)
	// CheckPin returns ErrContextFloor if prompts had no room left with the message pinned.
	CheckPin(ctx context.Context, scope core.Scope, id core.SessionID, m core.Message) error
}

// contextControl answers what people ask of a session's context and changes its
// summary as they wish.
type contextControl interface {
	Where(ctx context.Context, scope core.Scope, id core.SessionID, message core.MessageID) (core.MessageWhere, error)
	DryRun(ctx context.Context, scope core.Scope, id core.SessionID, ask core.DryRun) (core.ContextPlan, error)
	Edit(ctx context.Context, scope core.Scope, id core.SessionID, edit core.SummaryEdit) (core.Summary, error)
	Restore(ctx context.Context, scope core.Scope, id core.SessionID, version int) (core.Session, error)
	Diff(ctx context.Context, scope core.Scope, id core.SessionID, version, against int) (core.SummaryDiff, error)
}

// budget knows what may still be spent.
type budget interface {
	// Check returns core.ErrSpendLimit when no model may be called for the owner now.
	Check(ctx context.Context, owner string) error
}

// observer is told of runs that were accepted (telemetry).
type observer interface {
	// Accepted is told of a run in the context of the request that asked for it, before
	// this process starts it.
	Accepted(ctx context.Context, run core.Run)
}

// Limits bound what callers may send. Sizes are bytes of UTF-8; zero values mean
// the defaults.
type Limits struct {
	Message      int // content of a message; default 1 MiB (CONTEXT § 4, rung 0)
	Title        int // default 500
	Instructions int // default 16 KiB
	Metadata     int // default 16 KiB
	Name         int // names and ids that callers choose; default 200
	Focus        int // of a summary; default 2,000
	Comment      int // on a decision; default 2,000
	Queued       int // messages of a session that wait for their turn; default 100
	Owned        int // runs of an owner that are queued or at work; default 1,000
	OfUser       int // the same of an end user; default 20
}

func (l Limits) withDefaults() Limits {
	for field, value := range map[*int]int{
		&l.Message: 1 << 20, &l.Title: 500, &l.Instructions: 16 << 10, &l.Metadata: 16 << 10,
		&l.Name: 200, &l.Focus: 2000, &l.Comment: 2000, &l.Queued: 100, &l.Owned: 1000, &l.OfUser: 20,
	} {
		if *field <= 0 {
			*field = value
		}
	}
	return l
}

// Options are what a Service is made of. All but Limits, Budget and Observer are
// required.
type Options struct {
	Sessions     sessionStore
	Messages     messageStore
	Branches     branchStore
	Runs         runStore
	Events       eventStore
	Feed         eventFeed
	Work         worker
	Agents       agentCatalog
	Models       modelRegistry
	Counter      counter
	Files        fileAttacher
	Context      contextKeeper
	Control      contextControl
	DefaultAgent string   // of sessions that name none
	Worker       string   // names this process in leases, as in runs.Options
	Budget       budget   // nil = no limits
	Observer     observer // nil = nobody is told
	// PrivateWebhooks allows webhooks whose address is not of the public internet.
	PrivateWebhooks bool
	Limits          Limits
	Logger          *slog.Logger
}

// Service is the use cases. Safe for concurrent use.
type Service struct {
	sessions     sessionStore
	messages     messageStore
	branches     branchStore
	runs         runStore
	events       eventStore
	feed         eventFeed
	work         worker
	agents       agentCatalog
	models       modelRegistry
	counter      counter
	files        fileAttacher
	keeper       contextKeeper
	control      contextControl
	defaultAgent string
	worker       string
	limits       Limits
	log          *slog.Logger
	budget       budget
	observer     observer
	firsts       firsts
	private      bool // webhooks may go to private addresses
}

// New returns a Service.
func New(o Options) *Service {
	return &Service{
		sessions: o.Sessions, messages: o.Messages, branches: o.Branches, runs: o.Runs, events: o.Events, feed: o.Feed, work: o.Work,
		agents: o.Agents, models: o.Models, counter: o.Counter, files: o.Files, keeper: o.Context, control: o.Control,
		defaultAgent: o.DefaultAgent, worker: o.Worker, limits: o.Limits.withDefaults(), log: o.Logger,
		budget: o.Budget, observer: o.Observer, private: o.PrivateWebhooks,
	}
}
