package compaction

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"bobbin/app/core"
)

// store commits what was made, as m.into says. The change is made anew, without another
// model call, when the session was changed meanwhile by something that the summary does
// not depend on. ErrStale: it does.
func (k *Keeper) store(ctx context.Context, t Turn, p plan, m made, e *effort) (Turn, plan, error) {
	for {
		next, c, err := m.into(t, p)
		if err != nil {
			return t, p, err
		}
		err = k.apply(ctx, &t, c)
		if errors.Is(err, core.ErrStale) && e.lost < maxReloads {
			e.lost++
			fresh, again, ok, err := k.still(ctx, t, p, m, e)
			if err != nil {
				return t, p, err
			}
			if ok {
				t, p = fresh, again
				continue
			}
		}
		k.committed(ctx, Commit{Turn: t, Summary: m.summary, Before: p.d, After: next.d, Err: err})
		if err != nil {
			k.thrownAway(ctx, t, m, err)
			return t, p, fmt.Errorf("commit the summary: %w", err)
		}
		t.History = after(t.History, t.Session.SummaryThroughSeq)
		return t, next, nil
	}
}

// still loads the turn again and reports whether the summary can be used in it: it
// extends the summary in use, and what it covers is what it was made from.
func (k *Keeper) still(ctx context.Context, t Turn, p plan, m made, e *effort) (Turn, plan, bool, error) {
	fresh, err := k.reload(ctx, t)
	if err != nil {
		return t, p, false, err
	}
	covers := func(t Turn) []core.MessageID {
		var ids []core.MessageID
		for _, message := range covered(t.History, m.order.ThroughSeq) {
			ids = append(ids, message.ID)
		}
		return ids
	}
	if fresh.Session.SummaryVersion != t.Session.SummaryVersion || !slices.Equal(covers(fresh), covers(t)) {
		return t, p, false, nil
	}
	in, err := k.input(ctx, fresh)
	if err != nil {
		return t, p, false, err
	}
	in = k.seen(in, fresh, e)
	in.Summarized, in.Force = p.in.Summarized, p.in.Force
	return fresh, replan(in), true, nil
}

// thrownAway books the calls of a summary that lost against another change.
func (k *Keeper) thrownAway(ctx context.Context, t Turn, m made, cause error) {
	if !errors.Is(cause, core.ErrStale) || len(m.calls) == 0 {
		return
	}
	if _, err := k.Stores.Sessions.SummaryFailed(ctx, scopeOf(t), core.SummaryFailure{SessionID: t.Session.ID, ModelCalls: m.calls}); err != nil {
		k.Logger.WarnContext(ctx, "calls for a summary not booked", "session_id", t.Session.ID, "err", err)
	}
}

// activate puts the prepared summary to use and plans again. No model is called.
func (k *Keeper) activate(ctx context.Context, t Turn, p plan) (Turn, plan, error) {
	found, err := k.Stores.Summaries.Find(ctx, scopeOf(t), t.Session.ID, []core.SummaryID{t.Work.Prepared.ID})
	if err == nil && len(found) == 0 {
		err = core.Errorf(core.ErrStale, "summary %d is gone", p.d.Activate.Version)
	}
	if err != nil {
		return t, p, fmt.Errorf("load the prepared summary: %w", err)
	}
	s, in := found[0], p.in
	in.State = p.state
	next := replan(in.Activated())
	before, shown, err := k.sizes(ctx, t, p, s, next)
	if err != nil {
		return t, p, err
	}
	s.State, s.Trigger = core.SummaryActive, p.d.Activate.Trigger
	err = k.apply(ctx, &t, core.ContextChange{Activate: s.Version, PromptState: next.state.Encode(), Events: []core.Event{
		core.NewEvent(t.Session.ID, t.RunID, core.EventContextCompleted, core.ContextData{
			Kind: s.Kind, TokensBefore: before, TokensAfter: shown, MessagesCovered: s.MessagesCovered, Trigger: s.Trigger,
		}),
	}})
	k.committed(ctx, Commit{Turn: t, Summary: s, Before: p.d, After: next.d, Err: err})
	if err != nil {
		return t, p, fmt.Errorf("put the prepared summary to use: %w", err)
	}
	t.History, t.Work.Prepared = after(t.History, s.ThroughSeq), core.PreparedSummary{}
	return t, next, nil
}

// without goes on without a summary that can be done without: nothing is stored but
// that it failed, and why. The prompt stays as it is.
func (k *Keeper) without(ctx context.Context, t Turn, p plan, m made, e *effort) (Turn, plan, error) {
	e.failed = true
	in := p.in
	in.Resting = true
	if m.failure == "" { // the model was not asked
		return t, replan(in), nil
	}
	k.Logger.WarnContext(ctx, "summary failed, nothing is changed", "session_id", t.Session.ID, "agent", t.Profile.Agent.Name,
		"trigger", m.order.Trigger, "ahead", m.ahead, "reason", m.failure)
	events, err := k.Stores.Sessions.SummaryFailed(ctx, scopeOf(t), core.SummaryFailure{
		SessionID: t.Session.ID, Reason: m.failure, ModelCalls: m.calls, Events: []core.Event{
			core.NewEvent(t.Session.ID, t.RunID, core.EventContextFailed, core.ContextData{
				Kind: m.order.Kind, Trigger: m.order.Trigger, Reason: "no summary was made: " + m.failure, Ahead: m.ahead,
			}),
		},
	})
	if err != nil {
		return t, p, fmt.Errorf("record the failed summary: %w", err)
	}
	k.Publisher.Publish(ctx, events)
	return t, replan(in), nil
}
