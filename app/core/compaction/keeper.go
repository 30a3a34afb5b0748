package compaction

import (
	"context"
	"log/slog"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
)

// sessionStore is what a Keeper needs of the sessions in storage.
type sessionStore interface {
	Get(ctx context.Context, scope core.Scope, id core.SessionID) (core.Session, error)
	ApplyContext(ctx context.Context, scope core.Scope, change core.ContextChange) (core.Session, []core.Event, error)
	SummaryWork(ctx context.Context, scope core.Scope, id core.SessionID) (core.SummaryWork, error)
	SummaryFailed(ctx context.Context, scope core.Scope, f core.SummaryFailure) ([]core.Event, error)
	LeaseSummary(ctx context.Context, scope core.Scope, id core.SessionID, holder string, d time.Duration) (core.Grant, error)
	FreeSummary(ctx context.Context, id core.SessionID, holder string) error
	FreeSummaries(ctx context.Context, prefix string) error
}

// messageStore is what a Keeper needs of the message log.
type messageStore interface {
	GetMessagesAfter(ctx context.Context, scope core.Scope, id core.SessionID, after core.MessageID) ([]core.Message, error)
	Pinned(ctx context.Context, scope core.Scope, id core.SessionID) ([]core.Message, error)
	CountOnPath(ctx context.Context, scope core.Scope, id core.SessionID) (int, error)
}

// summaryStore reads the versions of summaries.
type summaryStore interface {
	List(ctx context.Context, scope core.Scope, id core.SessionID, q core.PageQuery) (core.Page[core.Summary], error)
	// Find returns what is there of these versions.
	Find(ctx context.Context, scope core.Scope, id core.SessionID, ids []core.SummaryID) ([]core.Summary, error)
}

// runStore finds the run in progress.
type runStore interface {
	Active(ctx context.Context, scope core.Scope, id core.SessionID) (core.Run, error)
}

// publisher tells watchers what was committed.
type publisher interface {
	Publish(ctx context.Context, events []core.Event)
	Delta(ctx context.Context, event core.Event)
}

// counter counts cl100k_base tokens.
type counter interface {
	Text(s string) int
	Tools(tools []llm.ToolSpec) int
}

// calibrator knows how a model's own counts differ from ours, in a conversation.
type calibrator interface {
	Estimate(model string, session core.SessionID) tokens.Estimate
	// Observe takes what we counted in cl100k_base tokens and what the provider counted.
	Observe(model string, session core.SessionID, estimated, provider int)
	// Window returns the window that the model's provider told when it refused a
	// prompt; 0 = none.
	Window(model string) int
}

// models finds language models by name.
type models interface {
	Get(name string) (llm.Model, error) // empty = default_llm
	// Cheap returns the small model of the same provider at the same address.
	Cheap(name string) (llm.Model, bool)
}

// profiler says how a session's agent is set up.
type profiler interface {
	// Profile resolves the session's agent; model overrides its model unless empty.
	Profile(ctx context.Context, session core.Session, model string) (Profile, error)
}

// Stores are the repositories of a Keeper.
type Stores struct {
	Sessions  sessionStore
	Messages  messageStore
	Summaries summaryStore
	Runs      runStore
	Blobs     blobStore // nil = images and files are only described
}

// Options are what a Keeper is made of. All but Compactor, Budget and Observer are required.
type Options struct {
	Stores     Stores
	Models     models
	Profiles   profiler
	Counter    counter
	Calibrator calibrator
	Publisher  publisher
	Logger     *slog.Logger
	// SummaryTime bounds the model calls of one summary; after it the summary is
	// made without a model (C7).
	SummaryTime time.Duration
	// BackgroundTime bounds those of one that nobody waits for; after it there is none.
	BackgroundTime time.Duration
	Grace          time.Duration // for summaries in the background when Run ends
	// Worker names this process in leases, the same after a restart; empty = the leases
	// of a process that died end by their time alone.
	Worker    string
	Compactor Compactor // of tool loops; nil = they are not compacted (L3)
	Budget    budget    // nil = no limits
	Observer  observer  // nil = nobody is told
}

// Keeper keeps the prompts of sessions within their models' windows.
type Keeper struct {
	Options
	flights *flights
	jobs    *jobs
}

// New returns a Keeper.
func New(o Options) *Keeper {
	if o.Observer == nil {
		o.Observer = silent{}
	}
	return &Keeper{Options: o, flights: newFlights(), jobs: newJobs()}
}
