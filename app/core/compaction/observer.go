package compaction

import (
	"cmp"
	"context"
	"errors"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/summarize"
)

// observer is told what becomes of prompts and summaries (telemetry). It must not
// wait for anything.
type observer interface {
	// Fitted is told what Fit returns: the measures that were taken are in d.Rungs.
	Fitted(ctx context.Context, t Turn, d contextwindow.Decision, err error)
	// Sending is told of every prompt that is made to be sent.
	Sending(ctx context.Context, t Turn, d contextwindow.Decision, sent contextwindow.Sent)
	// Warned is told of a prompt that is near the limit, once in a compaction cycle.
	Warned(ctx context.Context, t Turn, d contextwindow.Decision)
	// Summarizing is told that a summary is begun. It is made with the context
	// returned; ended is called once, whatever comes of it.
	Summarizing(ctx context.Context, t Turn, o contextwindow.Order) (_ context.Context, ended func(Made))
	// Committed is told of a summary that was stored, or could not be.
	Committed(ctx context.Context, c Commit)
	// Renewed is told of leases that were to be lengthened: err = none was.
	Renewed(kind core.WorkKind, renewed, lost int, err error)
	// TookOver is told of work that another process, or an earlier one, had begun.
	TookOver(kind core.WorkKind, n int)
}

// Outcome is what came of making a summary.
type Outcome string

// The outcomes.
const (
	OutcomeMade     Outcome = "made"
	OutcomeFallback Outcome = "fallback" // made without the model that was to make it; Cause says why
	OutcomeSkipped  Outcome = "skipped"  // it would not have been smaller than what it replaces
	OutcomeCanceled Outcome = "canceled" // by the context
	OutcomeFailed   Outcome = "failed"
)

// Made is what came of making a summary.
type Made struct {
	Outcome Outcome
	Cause   string       // of a fallback, one of a few words: see summarize.Result
	Summary core.Summary // with OutcomeMade and OutcomeFallback
	Err     error        // with the other outcomes
}

// Commit is a summary on its way into the database.
type Commit struct {
	Turn    Turn
	Summary core.Summary
	Before  contextwindow.Decision // without it
	After   contextwindow.Decision // and with it
	Err     error                  // why it was not stored: core.ErrStale = the session was changed meanwhile
}

// silent is the observer of a Keeper that has none.
type silent struct{}

func (silent) Fitted(context.Context, Turn, contextwindow.Decision, error) {}
func (silent) Sending(context.Context, Turn, contextwindow.Decision, contextwindow.Sent) {
}
func (silent) Warned(context.Context, Turn, contextwindow.Decision) {}
func (silent) Committed(context.Context, Commit)                    {}
func (silent) Renewed(core.WorkKind, int, int, error)               {}
func (silent) TookOver(core.WorkKind, int)                          {}

func (silent) Summarizing(ctx context.Context, _ Turn, _ contextwindow.Order) (context.Context, func(Made)) {
	return ctx, func(Made) {}
}

// outcome returns what came of making m.
func (m made) outcome(ctx context.Context, err error) Made {
	switch {
	case errors.Is(err, summarize.ErrNoGain):
		return Made{Outcome: OutcomeSkipped, Err: err}
	case err != nil && ctx.Err() != nil:
		return Made{Outcome: OutcomeCanceled, Err: err}
	case err != nil:
		return Made{Outcome: OutcomeFailed, Err: err}
	case m.summary.Note != "":
		return Made{Outcome: OutcomeFallback, Cause: cmp.Or(m.cause, causeOf(m.summary.Note)), Summary: m.summary}
	default:
		return Made{Outcome: OutcomeMade, Summary: m.summary}
	}
}

// causeOf returns the word for a note of the Keeper's own.
func causeOf(note string) string {
	switch note {
	case noBudget:
		return "no_budget"
	case noTime:
		return "busy"
	case noTrust:
		return "breaker"
	default:
		return "no_model"
	}
}

// committed logs a summary that was stored (R6) and tells the observer.
func (k *Keeper) committed(ctx context.Context, c Commit) {
	k.Observer.Committed(ctx, c)
	if c.Err != nil {
		return
	}
	if c.Summary.Kind == core.SummaryRun { // L6
		k.Logger.InfoContext(ctx, "tool loop compacted", "session_id", c.Turn.Session.ID, "run_id", c.Turn.RunID, "trigger", c.Summary.Trigger,
			"strategy", c.Summary.Strategy, "covered", c.Summary.MessagesCovered, "summary_tokens", c.Summary.TokenCount,
			"messages_before", c.Before.Messages(), "messages_after", c.After.Messages(), "tokens_before", c.Before.Total, "tokens_after", c.After.Total,
			"usable", c.After.Budget.Usable, "window", c.After.Budget.Window, "dur", c.Summary.Duration, "note", c.Summary.Note)
		return
	}
	k.Logger.InfoContext(ctx, "context summarized", "session_id", c.Turn.Session.ID, "version", c.Turn.Session.SummaryVersion,
		"trigger", c.Summary.Trigger, "strategy", c.Summary.Strategy, "messages", c.Summary.MessagesAdded,
		"summary_tokens", c.Summary.TokenCount, "tail_messages", len(c.After.History),
		"tokens_before", c.Before.Total, "tokens_after", c.After.Total, "usable", c.After.Budget.Usable, "window", c.After.Budget.Window,
		"dur", c.Summary.Duration, "note", c.Summary.Note)
}
