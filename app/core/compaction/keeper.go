package compaction

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/sync/semaphore"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
)

// Stores are the repositories that a Compactor uses.
type Stores struct {
	Sessions  core.SessionStore
	Messages  core.MessageStore
	Summaries core.SummaryStore
	Runs      core.RunStore
	Blobs     core.BlobStore    // nil = images and files are only described
	Search    core.SearchStore  // nil = nothing is recalled
	Standing  InstructionReader // nil = there are no standing instructions
	Setups    SetupReader       // nil = another system prompt makes thoughts invalid
}

// Options configure a Compactor. All are required except Budget and Observer.
type Options struct {
	Stores Stores
	Models llm.Models
	// LoadProfile resolves the setup of the session's agent (agents.Profiles.Profile); model
	// overrides its model unless empty.
	LoadProfile func(ctx context.Context, session core.Session, model string) (Profile, error)
	Counter     llm.TokenCounter
	Calibrator  *tokens.Calibrator
	Publisher   core.Publisher
	Logger      *slog.Logger
	// SummaryTime limits how long a prompt waits for a summary. After it the prompt is sent
	// without the summary, which is finished in the background. It also limits the model
	// calls for notes on a tool loop.
	SummaryTime time.Duration
	// BackgroundTime limits the model calls for one summary; after it the summary fails.
	BackgroundTime time.Duration
	Grace          time.Duration // for summaries in progress when Run ends
	// Worker names this process in leases; those of a process that died expire.
	Worker   string
	Budget   llm.Budget // nil = no limits
	Observer Observer   // nil = none
}

// Compactor keeps the prompts of sessions within their models' windows.
type Compactor struct {
	Options
	jobs   *jobs
	limits textLimits
}

// New returns a Compactor.
func New(o Options) *Compactor {
	if o.Observer == nil {
		o.Observer = noopObserver{}
	}
	working, stop := context.WithCancel(context.Background())
	return &Compactor{
		Options: o,
		jobs: &jobs{
			workers: semaphore.NewWeighted(workers), bySession: map[core.SessionID]bool{},
			onStop: func(cancel func()) func() bool { return context.AfterFunc(working, cancel) }, stopAll: stop,
		},
		limits: textLimits{
			slices: semaphore.NewWeighted(slicesBytes), summaries: semaphore.NewWeighted(summaryBytes), views: semaphore.NewWeighted(maxViews),
		},
	}
}
