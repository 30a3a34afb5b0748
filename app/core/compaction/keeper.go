package compaction

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/semaphore"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/app/core/summarize"
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
	jobs *jobs
	// They bound the texts in memory, in bytes, and the reports for people. The number of runs bounds those of runs.
	slices, materials, views *semaphore.Weighted
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
		slices: semaphore.NewWeighted(slicesBytes), materials: semaphore.NewWeighted(summaryBytes), views: semaphore.NewWeighted(maxViews),
	}
}

// Only one summary of a session is made at a time across all processes: its maker holds a
// lease on the session row, by the database's clock. It takes the lease before it calls the
// model and releases it afterwards; the lease of a process that died expires.

// The times of a lease.
const (
	leaseMargin  = 30 * time.Second // by which a lease outlasts the model call
	storeTimeout = 5 * time.Second  // to release a lease, also after the caller has gone
)

// summaryLease is the exclusive right to make summaries of one session.
type summaryLease struct {
	k      *Compactor
	scope  core.Tenant
	id     core.SessionID
	holder string
}

// acquireLease takes the session's lease; nil = another holder has it.
func (k *Compactor) acquireLease(ctx context.Context, tenant core.Tenant, id core.SessionID) (*summaryLease, error) {
	p := &summaryLease{k: k, scope: tenant, id: id, holder: k.Worker + "/" + core.NewID[string]()}
	ok, err := p.takeOrExtend(ctx)
	if err != nil {
		p.releaseLease(ctx) // it may have been acquired
	}
	if err != nil || !ok {
		return nil, err
	}
	return p, nil
}

// takeOrExtend takes or extends the lease and reports whether we hold it.
func (p *summaryLease) takeOrExtend(ctx context.Context) (bool, error) {
	got, err := p.k.Stores.Sessions.LeaseSummary(ctx, p.scope, p.id, p.holder, max(p.k.SummaryTime, p.k.BackgroundTime)+leaseMargin)
	if err != nil {
		return false, fmt.Errorf("lease the summary: %w", err)
	}
	if got == core.GrantTakenOver {
		p.k.Observer.Count(core.CountTakeovers, 1, core.WorkSummary)
	}
	return got.OK(), nil
}

// renewLease extends the lease for another summary. ErrStale: it expired and has another holder.
func (p *summaryLease) renewLease(ctx context.Context) error {
	ok, err := p.takeOrExtend(ctx)
	outcome := "renewed"
	switch {
	case err != nil:
		outcome = "failed"
	case !ok:
		outcome, err = "lost", core.Errorf(core.ErrStale, "the lease for a summary of session %s was lost", p.id)
	}
	p.k.Observer.Count(core.CountRenewals, 1, core.WorkSummary, outcome)
	return err
}

// releaseLease releases the lease. If that fails, the lease expires by itself.
func (p *summaryLease) releaseLease(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	if err := p.k.Stores.Sessions.FreeSummary(ctx, p.id, p.holder); err != nil {
		p.k.Logger.WarnContext(ctx, "summary lease not released", "session_id", p.id, "err", err)
	}
}

// Observer receives what happens to prompts and summaries (telemetry). It must not block.
type Observer interface {
	core.Observer
	// Fitted receives what Fit returns: d.Rungs are the rungs that were climbed.
	Fitted(ctx context.Context, t Turn, d contextwindow.Decision, err error)
	// Sending receives every prompt that is about to be sent.
	Sending(ctx context.Context, t Turn, d contextwindow.Decision, sent contextwindow.PromptSize)
	// CountOf adds n to a counter of the model; the other labels have these values.
	CountOf(model string, counter core.Counter, n int, labels ...string)
	// Summarizing receives the start of a summary. The summary is made with the context
	// returned; ended is called exactly once.
	Summarizing(ctx context.Context, t Turn, o contextwindow.Order) (_ context.Context, ended func(Made))
	// Committed receives a summary that was stored, or could not be.
	Committed(ctx context.Context, c Commit)
}

// Outcome is the result of making a summary, in a word.
type Outcome string

// The outcomes.
const (
	OutcomeMade     Outcome = "made"
	OutcomeFallback Outcome = "fallback" // made without its model; Cause says why
	OutcomeSkipped  Outcome = "skipped"  // it would not have been smaller than what it replaces
	OutcomeCanceled Outcome = "canceled" // by the context
	OutcomeFailed   Outcome = "failed"
)

// What became of a provider's own summary, in a word (core.CountNative).
const (
	NativeMade     = "made"
	NativeFailed   = "failed"   // the model call, or nothing was asked since it would not fit
	NativeRejected = "rejected" // by Bobbin: by the checks of summaries, or as too large
	NativeRefused  = "refused"  // by the provider, when it was sent back
)

// Made is the result of making a summary.
type Made struct {
	Outcome Outcome
	Cause   string       // of a fallback, one of a fixed set: see summarize.Result
	Summary core.Summary // with OutcomeMade and OutcomeFallback
	Err     error        // with the other outcomes
}

// Commit is a summary and the result of storing it.
type Commit struct {
	Turn    Turn
	Summary core.Summary
	Before  contextwindow.Decision // without the summary
	After   contextwindow.Decision // with the summary
	Err     error                  // why it was not stored: core.ErrStale = the session was changed meanwhile
}

// noopObserver is the observer of a Compactor without one.
type noopObserver struct{ core.NoObserver }

func (noopObserver) Fitted(context.Context, Turn, contextwindow.Decision, error) {}
func (noopObserver) Sending(context.Context, Turn, contextwindow.Decision, contextwindow.PromptSize) {
}
func (noopObserver) CountOf(string, core.Counter, int, ...string) {}
func (noopObserver) Committed(context.Context, Commit)            {}

func (noopObserver) Summarizing(ctx context.Context, _ Turn, _ contextwindow.Order) (context.Context, func(Made)) {
	return ctx, func(Made) {}
}

// outcomeFor returns the result of making m.
func (m draft) outcomeFor(ctx context.Context, err error) Made {
	switch {
	case errors.Is(err, summarize.ErrNoGain):
		return Made{Outcome: OutcomeSkipped, Err: err}
	case err != nil && ctx.Err() != nil:
		return Made{Outcome: OutcomeCanceled, Err: err}
	case err != nil:
		return Made{Outcome: OutcomeFailed, Err: err}
	case m.summary.Note != "":
		cause := map[string]string{noBudget: "no_budget", breakerOpen: "breaker"}[m.summary.Note]
		return Made{Outcome: OutcomeFallback, Cause: cmp.Or(m.cause, cause, "no_model"), Summary: m.summary}
	default:
		return Made{Outcome: OutcomeMade, Summary: m.summary}
	}
}

// reportCommit reports a commit to the observer, and logs it.
func (k *Compactor) reportCommit(ctx context.Context, c Commit) {
	k.Observer.Committed(ctx, c)
	if c.Err != nil {
		return
	}
	if c.Summary.Kind == core.SummaryRun {
		k.Logger.InfoContext(ctx, "tool loop compacted", "session_id", c.Turn.Session.ID, "run_id", c.Turn.RunID, "trigger", c.Summary.Trigger,
			"strategy", c.Summary.Strategy, "covered", c.Summary.MessagesCovered, "summary_tokens", c.Summary.TokenCount,
			"messages_before", c.Before.Messages(), "messages_after", c.After.Messages(), "tokens_before", c.Before.Total, "tokens_after", c.After.Total,
			"usable", c.After.Budget.Usable, "window", c.After.Budget.Window, "dur", c.Summary.Duration, "note", c.Summary.Note)
		return
	}
	k.checkCoverage(ctx, c.Turn)
	k.Logger.InfoContext(ctx, "context summarized", "session_id", c.Turn.Session.ID, "version", c.Turn.Session.SummaryVersion,
		"trigger", c.Summary.Trigger, "strategy", c.Summary.Strategy, "messages", c.Summary.MessagesAdded,
		"summary_tokens", c.Summary.TokenCount, "tail_messages", len(c.After.History),
		"tokens_before", c.Before.Total, "tokens_after", c.After.Total, "usable", c.After.Budget.Usable, "window", c.After.Budget.Window,
		"dur", c.Summary.Duration, "note", c.Summary.Note)
}
