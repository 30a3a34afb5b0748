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

// done reports whether nothing is to be carried out.
func (p plan) done() bool {
	return p.d.Summarize == nil && p.d.Activate == nil && p.d.Prepare == nil && !p.d.Compacted
}

// effort is how far the carrying out of decisions for one turn has come.
type effort struct {
	background bool // nobody waits for it
	pass       *pass
	late       bool // another's summary took too long: no more waiting
	failed     bool // a summary that can be done without failed: no more of them
	noGain     bool // there is nothing that would be smaller as a summary
	noLoop     bool // the same of notes on the tool loop, or they failed
	rounds     int  // summaries made
	lost       int  // compare-and-sets
}

// errOutside says that a summary is to be made, and that the right to do so is not
// there yet.
var errOutside = errors.New("a pass is needed")

// fit does the work of Fit.
func (k *Keeper) fit(ctx context.Context, t Turn) (Turn, contextwindow.Decision, error) {
	in, err := k.input(ctx, t)
	if err != nil {
		return t, contextwindow.Decision{}, err
	}
	p := replan(in)
	if p.done() {
		return t, p.d, floorError(p.d)
	}
	e := &effort{}
	defer func() { e.pass.leave(ctx) }()
	for {
		if t, p, err = k.view(ctx, t, e); err == nil {
			t, p, err = k.carry(ctx, t, p, e)
		}
		switch {
		case errors.Is(err, errOutside):
			e.pass, err = k.enter(ctx, scopeOf(t), t.Session.ID, k.SummaryTime)
			if err != nil {
				return t, p.d, err
			}
			e.late = e.pass == nil
		case !errors.Is(err, core.ErrStale):
			return t, p.d, err
		case e.lost >= maxReloads:
			return t, p.d, againAndAgain()
		default:
			e.lost++
		}
	}
}

// againAndAgain is not ErrStale: that would say that the run belongs to somebody else.
func againAndAgain() error {
	return &core.Error{Kind: core.ErrConflict, Code: "context_conflict",
		Message: "The conversation was summarized by others again and again. Send the message again later."}
}

// view plans with what goes on with the session's summaries in view.
func (k *Keeper) view(ctx context.Context, t Turn, e *effort) (Turn, plan, error) {
	t, err := k.atWork(ctx, t)
	if err != nil {
		return t, plan{}, err
	}
	in, err := k.input(ctx, t)
	if err != nil {
		return t, plan{}, err
	}
	return t, replan(k.seen(in, t, e)), nil
}

// atWork looks at what goes on with the session's summaries. A turn that is older than
// the session's present state is loaded again.
func (k *Keeper) atWork(ctx context.Context, t Turn) (Turn, error) {
	work, err := k.Stores.Sessions.SummaryWork(ctx, scopeOf(t), t.Session.ID)
	if err != nil {
		return t, fmt.Errorf("look at the session's summaries: %w", err)
	}
	if work.Revision != t.Session.PromptRevision {
		if t, err = k.reload(ctx, t); err != nil {
			return t, err
		}
	}
	t.Work = work
	return t, nil
}

// seen puts what goes on with the session's summaries into the input.
func (k *Keeper) seen(in contextwindow.Input, t Turn, e *effort) contextwindow.Input {
	work := t.Work
	ready := work.Prepared
	in.Prepared = contextwindow.ActiveSummary{Version: ready.Version, ThroughSeq: ready.ThroughSeq, Tokens: ready.Tokens, Messages: ready.Messages}
	in.Busy = e.pass == nil && (work.Busy || !e.background && k.jobs.has(t.Session.ID))
	in.Resting = work.Breaker.Until != nil || e.late || e.failed
	in.NoSummary, in.NoLoop = e.noGain || e.rounds >= maxRounds, e.noLoop
	if e.background {
		in.Moment = contextwindow.AfterRun
	}
	return in
}

// carry carries decisions out until one needs nothing more.
func (k *Keeper) carry(ctx context.Context, t Turn, p plan, e *effort) (Turn, plan, error) {
	if p.d.Summarize != nil {
		if d, ok := hopeless(p.in); ok {
			p.d = d
			return t, p, floorError(d)
		}
	}
	for {
		var err error
		switch {
		case p.d.Activate != nil:
			t, p, err = k.activate(ctx, t, p)
		case p.d.Summarize == nil:
			return k.finish(ctx, t, p, e)
		case p.d.Summarize.Kind == core.SummaryRun: // of the run that asks: nobody else makes it
			t, p, err = k.compactLoop(ctx, t, p)
			e.noLoop = e.noLoop || p.in.NoLoop
		case e.pass == nil && !e.late:
			return t, p, errOutside
		default:
			t, p, err = k.round(ctx, t, p, e)
		}
		if err != nil {
			return t, p, err
		}
	}
}

// finish stores what the last decision changed, and has a summary prepared that it
// asks for.
func (k *Keeper) finish(ctx context.Context, t Turn, p plan, e *effort) (Turn, plan, error) {
	if p.d.Prepare != nil && !e.background {
		k.Soon(scopeOf(t), t.Session.ID)
	}
	if raw := p.state.Encode(); p.d.Compacted && p.d.Floor == nil && !bytes.Equal(raw, t.Session.PromptState) {
		err := k.apply(ctx, &t, core.ContextChange{PromptState: raw})
		if err != nil {
			return t, p, fmt.Errorf("store the prompt state: %w", err)
		}
	}
	return t, p, floorError(p.d)
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
func (k *Keeper) round(ctx context.Context, t Turn, p plan, e *effort) (Turn, plan, error) {
	if err := e.pass.renew(ctx); err != nil {
		return t, p, err
	}
	m, err := k.make(ctx, t, *p.d.Summarize, k.manner(t, e))
	switch {
	case errors.Is(err, summarize.ErrNoGain):
		return k.skipped(ctx, t, p, m, e)
	case errors.Is(err, summarize.ErrFailed):
		return k.without(ctx, t, p, m, e)
	case err != nil:
		return t, p, err
	}
	e.rounds++
	return k.commit(ctx, t, p, m, e)
}

// commit stores the summary as the one in use and plans again.
func (k *Keeper) commit(ctx context.Context, t Turn, p plan, m made, e *effort) (Turn, plan, error) {
	m.into = func(t Turn, p plan) (plan, core.ContextChange, error) {
		in := p.in
		in.State = p.state
		in = in.After(m.order, m.summary.TokenCount, m.summary.MessagesCovered)
		in.NoSummary = e.rounds >= maxRounds
		next := replan(in)
		before, after, err := k.sizes(ctx, t, p, m.summary, next)
		return next, m.change(next.state, before, after), err
	}
	return k.store(ctx, t, p, m, e)
}

// skipped goes on without a summary: none would be smaller than what it replaces.
func (k *Keeper) skipped(ctx context.Context, t Turn, p plan, m made, e *effort) (Turn, plan, error) {
	e.noGain = true
	in := p.in
	in.State, in.NoSummary, in.Force = p.state, true, false
	if e.background { // nobody asked for it; the next prompt will
		return t, replan(in), nil
	}
	change := core.ContextChange{PromptState: t.Session.PromptState, ModelCalls: m.calls, Events: []core.Event{
		core.NewEvent(t.Session.ID, t.RunID, core.EventContextSkipped, core.ContextData{
			Kind: p.d.Summarize.Kind, Trigger: p.d.Summarize.Trigger, Reason: summarize.ErrNoGain.Error(),
		}),
	}}
	if err := k.apply(ctx, &t, change); err != nil {
		return t, p, fmt.Errorf("record the skipped summary: %w", err)
	}
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
