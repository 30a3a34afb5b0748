package nodes

import (
	"context"
	"log/slog"
	"time"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
)

// Deps are what the nodes and their graph are made of. All but Tails, ApprovalTime and Budget are
// required; agents.NewEngine needs no Observer either.
type Deps struct {
	LoadProfile func(ctx context.Context, session core.Session, model string) (compaction.Profile, error) // agents.Profiles.RunProfile
	Compactor   *compaction.Compactor
	Sessions    core.SessionStore
	Messages    core.MessageStore
	Tails       *TailCache // nil = messages are loaded for each run
	Runs        core.RunStore
	Journal     Recorder
	Titler      Titler
	Tools       *tools.Set
	Counter     llm.TokenCounter
	Calibrator  *tokens.Calibrator
	ToolLimits  ToolLimits
	// ApprovalTime is how long a run waits for a person; 0 = until there is an answer.
	ApprovalTime time.Duration
	Budget       llm.Budget // nil = no limits
	Observer     core.Observer
	Logger       *slog.Logger
}

// Recorder stores what a node produced, and notifies the watchers (runs.Recorder).
type Recorder interface {
	// Append commits one step of a run. ErrStale: another process owns the run.
	Append(ctx context.Context, w core.RunWrite) (core.Written, error)
	// Write is Append for a caller that publishes the events itself.
	Write(ctx context.Context, w core.RunWrite) (core.Written, error)
	Publish(ctx context.Context, events []core.Event)
	// Delta publishes something that is not stored.
	Delta(ctx context.Context, e core.Event)
}

// Titler gives untitled sessions a title beside the work on a run.
type Titler interface {
	// Begin is called when a run starts. Session is as the run found it.
	Begin(session core.Session, run core.Run)
}
