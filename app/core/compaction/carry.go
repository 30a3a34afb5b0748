package compaction

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/summarize"
)

// maxRounds bounds how many summaries one prompt may need: the second is for a
// summary that turned out larger than planned, the third for good measure.
const maxRounds = 3

// maxReloads bounds how often a lost compare-and-set is tried again.
const maxReloads = 5

// fit does the work of Fit.
func (k *Keeper) fit(ctx context.Context, t Turn) (Turn, contextwindow.Decision, error) {
	in, err := k.input(ctx, t)
	if err != nil {
		return t, contextwindow.Decision{}, err
	}
	d, state := contextwindow.Plan(in)
	if d.Summarize == nil && !d.Compacted {
		return t, d, floorError(d)
	}
	release, waited, err := k.flights.acquire(ctx, t.Session.ID)
	if err != nil {
		return t, d, err
	}
	defer release()
	if waited {
		return k.compactFresh(ctx, t, 0)
	}
	t2, d, err := k.compact(ctx, t, plan{in, d, state})
	if errors.Is(err, core.ErrStale) {
		return k.compactFresh(ctx, t, 1)
	}
	return t2, d, err
}

// compactFresh reads the session again and compacts what is needed then. It
// starts over when another process commits first.
func (k *Keeper) compactFresh(ctx context.Context, t Turn, tries int) (Turn, contextwindow.Decision, error) {
	for {
		fresh, err := k.reload(ctx, t)
		if err != nil {
			return t, contextwindow.Decision{}, err
		}
		in, err := k.input(ctx, fresh)
		if err != nil {
			return t, contextwindow.Decision{}, err
		}
		d, state := contextwindow.Plan(in)
		done, d, err := k.compact(ctx, fresh, plan{in, d, state})
		if !errors.Is(err, core.ErrStale) {
			return done, d, err
		}
		if tries++; tries > maxReloads {
			// Not ErrStale: that would say that the run belongs to somebody else.
			return t, d, &core.Error{Kind: core.ErrConflict, Code: "context_conflict",
				Message: "The conversation was summarized by others again and again. Send the message again later."}
		}
	}
}

// plan is a decision with what it was made from and the state that belongs to it.
type plan struct {
	in    contextwindow.Input
	d     contextwindow.Decision
	state contextwindow.PromptState
}

// replan plans the input.
func replan(in contextwindow.Input) plan {
	d, state := contextwindow.Plan(in)
	return plan{in, d, state}
}

// compact carries decisions out until one needs nothing more.
func (k *Keeper) compact(ctx context.Context, t Turn, p plan) (Turn, contextwindow.Decision, error) {
	if p.d.Summarize != nil {
		if d, ok := hopeless(p.in); ok {
			return t, d, floorError(d)
		}
	}
	for round := 1; p.d.Summarize != nil; round++ {
		var err error
		if t, p, err = k.round(ctx, t, p, round); err != nil {
			return t, p.d, err
		}
	}
	if raw := p.state.Encode(); p.d.Compacted && p.d.Floor == nil && !bytes.Equal(raw, t.Session.PromptState) {
		err := k.apply(ctx, &t, core.ContextChange{PromptState: raw})
		if err != nil {
			return t, p.d, fmt.Errorf("store the prompt state: %w", err)
		}
	}
	return t, p.d, floorError(p.d)
}

// apply commits a change against the session as the turn knows it.
func (k *Keeper) apply(ctx context.Context, t *Turn, change core.ContextChange) error {
	change.SessionID, change.Expect = t.Session.ID, t.Session.PromptRevision
	session, events, err := k.Stores.Sessions.ApplyContext(ctx, scopeOf(*t), change)
	if err != nil {
		return err
	}
	k.Publisher.Publish(ctx, events)
	t.Session = session
	return nil
}

// round makes one summary, commits it, and plans again.
func (k *Keeper) round(ctx context.Context, t Turn, p plan, round int) (Turn, plan, error) {
	if p.d.Summarize.Kind == core.SummaryRun {
		return k.compactLoop(ctx, t, p)
	}
	made, err := k.make(ctx, t, *p.d.Summarize)
	if errors.Is(err, summarize.ErrNoGain) {
		return k.skipped(ctx, t, p, made)
	}
	if err != nil {
		return t, p, err
	}
	in := p.in
	in.State = p.state
	in = in.After(*p.d.Summarize, made.summary.TokenCount, made.summary.MessagesCovered)
	in.NoSummary = round >= maxRounds
	next := replan(in)
	before, shown, err := k.sizes(ctx, t, p, made, next)
	if err != nil {
		return t, p, err
	}
	err = k.apply(ctx, &t, made.change(next.state, before, shown))
	k.committed(ctx, Commit{Turn: t, Summary: made.summary, Before: p.d, After: next.d, Err: err})
	if err != nil {
		return t, p, fmt.Errorf("commit the summary: %w", err)
	}
	t.History = after(t.History, made.summary.ThroughSeq)
	return t, next, nil
}

// skipped goes on without a summary: none would be smaller than what it replaces.
func (k *Keeper) skipped(ctx context.Context, t Turn, p plan, made made) (Turn, plan, error) {
	change := core.ContextChange{PromptState: t.Session.PromptState, ModelCalls: made.calls, Events: []core.Event{
		core.NewEvent(t.Session.ID, t.RunID, core.EventContextSkipped, core.ContextData{
			Kind: p.d.Summarize.Kind, Trigger: p.d.Summarize.Trigger, Reason: summarize.ErrNoGain.Error(),
		}),
	}}
	if err := k.apply(ctx, &t, change); err != nil {
		return t, p, fmt.Errorf("record the skipped summary: %w", err)
	}
	in := p.in
	in.State, in.NoSummary, in.Force = p.state, true, false
	return t, replan(in), nil
}

// after returns the messages behind the cursor.
func after(messages []core.Message, cursor int64) []core.Message {
	for i, m := range messages {
		if m.Seq > cursor {
			return messages[i:]
		}
	}
	return nil
}

// floorError returns the decision's refusal as an error that may be shown.
func floorError(d contextwindow.Decision) error {
	if d.Floor == nil {
		return nil
	}
	e := core.Errorf(core.ErrContextFloor, "%s", d.Floor.Error())
	e.Code = "context_floor"
	return e
}
