package compaction

import (
	"context"
	"errors"
	"fmt"

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
	release, ok := k.flights.tryAcquire(id)
	if !ok {
		return core.Summary{}, core.Errorf(core.ErrConflict, "a summary of this session is being made: wait for it")
	}
	defer release()
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
	return k.commitManual(ctx, t, p)
}

// commitManual makes the ordered summary and commits it.
func (k *Keeper) commitManual(ctx context.Context, t Turn, p plan) (core.Summary, error) {
	m, err := k.make(ctx, t, *p.d.Summarize)
	if errors.Is(err, summarize.ErrNoGain) {
		return core.Summary{}, core.Errorf(core.ErrUnprocessable, "there is nothing to summarize: a summary would not be smaller than the %d messages it replaces", p.d.Summarize.Messages)
	}
	if err != nil {
		return core.Summary{}, err
	}
	in := p.in.After(*p.d.Summarize, m.summary.TokenCount, m.summary.MessagesCovered)
	in.State, in.NoSummary = p.state, true
	next := replan(in)
	before, shown, err := k.sizes(ctx, t, p, m, next)
	if err != nil {
		return core.Summary{}, err
	}
	err = k.apply(ctx, &t, m.change(next.state, before, shown))
	k.committed(ctx, Commit{Turn: t, Summary: m.summary, Before: p.d, After: next.d, Err: err})
	if errors.Is(err, core.ErrStale) {
		return core.Summary{}, core.Errorf(core.ErrConflict, "the session was summarized meanwhile: look at its newest summary and try again if you still want to")
	}
	if err != nil {
		return core.Summary{}, fmt.Errorf("commit the summary: %w", err)
	}
	m.summary.Version = t.Session.SummaryVersion
	return m.summary, nil
}

// turn loads what the next prompt of a session depends on. The run in progress,
// if there is one, is kept apart: the cursor never passes its message.
func (k *Keeper) turn(ctx context.Context, scope core.Scope, id core.SessionID) (Turn, error) {
	return k.turnAs(ctx, scope, id, "")
}

// turnAs is turn with another model than the session's, unless it is empty.
func (k *Keeper) turnAs(ctx context.Context, scope core.Scope, id core.SessionID, model string) (Turn, error) {
	session, err := k.Stores.Sessions.Get(ctx, scope, id)
	if err != nil {
		return Turn{}, err
	}
	profile, err := k.Profiles.Profile(ctx, session, model)
	if err != nil {
		return Turn{}, err
	}
	t, err := k.reload(ctx, Turn{Session: session, Profile: profile})
	if err != nil {
		return Turn{}, err
	}
	run, err := k.Stores.Runs.Active(ctx, scope, id)
	if errors.Is(err, core.ErrNotFound) {
		return t, nil
	}
	if err != nil {
		return Turn{}, fmt.Errorf("find the run in progress: %w", err)
	}
	for i, m := range t.History {
		if m.ID == run.UserMessageID || m.RunID == run.ID { // a question that is answered anew is of an earlier run
			t.RunID, t.Run, t.History = run.ID, t.History[i:], t.History[:i]
			break
		}
	}
	return t, nil
}
