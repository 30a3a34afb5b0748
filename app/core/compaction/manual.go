package compaction

import (
	"context"
	"errors"

	"bobbin/app/core"
	"bobbin/app/core/redact"
	"bobbin/app/core/summarize"
)

// Summarize makes a summary now, whatever the triggers say. Focus is what the
// user asked to keep above all; empty = nothing. It returns the new version.
//
// Errors: ErrConflict while another summary of the session is being made or was
// committed first, ErrUnprocessable when there is nothing to summarize,
// ErrNotFound.
func (k *Keeper) Summarize(ctx context.Context, scope core.Scope, id core.SessionID, focus string) (core.Summary, error) {
	e := &effort{rounds: maxRounds} // one is enough
	defer func() { e.pass.leave(ctx) }()
	var err error
	if e.pass, err = k.enter(ctx, scope, id, 0); err != nil {
		return core.Summary{}, err
	}
	if e.pass == nil {
		return core.Summary{}, core.Errorf(core.ErrConflict, "a summary of this session is being made: wait for it")
	}
	t, err := k.turn(ctx, scope, id)
	if err != nil {
		return core.Summary{}, err
	}
	in, err := k.input(ctx, t)
	if err != nil {
		return core.Summary{}, err
	}
	in.Force = true
	p := replan(in)
	if p.d.Summarize == nil {
		return core.Summary{}, core.Errorf(core.ErrUnprocessable, "there is nothing to summarize: the conversation has fewer than two finished turns since the last summary")
	}
	p.d.Summarize.Focus = redact.Text(focus) // it is stored with the summary
	return k.commitManual(ctx, t, p, e)
}

// commitManual makes the ordered summary and commits it. The model is asked even if
// the breaker is open: somebody wants to know.
func (k *Keeper) commitManual(ctx context.Context, t Turn, p plan, e *effort) (core.Summary, error) {
	m, err := k.make(ctx, t, *p.d.Summarize, manner{limit: k.SummaryTime})
	if errors.Is(err, summarize.ErrNoGain) {
		return core.Summary{}, core.Errorf(core.ErrUnprocessable, "there is nothing to summarize: a summary would not be smaller than the %d messages it replaces", p.d.Summarize.Messages)
	}
	if err != nil {
		return core.Summary{}, err
	}
	t, _, err = k.commit(ctx, t, p, m, e)
	if errors.Is(err, core.ErrStale) {
		return core.Summary{}, core.Errorf(core.ErrConflict, "the session was summarized meanwhile: look at its newest summary and try again if you still want to")
	}
	if err != nil {
		return core.Summary{}, err
	}
	m.summary.Version, m.summary.ActivatedAt = t.Session.SummaryVersion, t.Session.LastSummarizedAt
	return m.summary, nil
}
