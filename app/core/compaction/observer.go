package compaction

import (
	"cmp"
	"context"
	"errors"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/summarize"
)

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
