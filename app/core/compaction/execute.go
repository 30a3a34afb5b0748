package compaction

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/app/core/summarize"
)

// maxReloads bounds the retries after a lost compare-and-set.
const maxReloads = 5

// plan is a decision with its input and the resulting state.
type plan struct {
	in    contextwindow.Input
	d     contextwindow.Decision
	state contextwindow.PromptState
}

// newPlan plans the input.
func newPlan(in contextwindow.Input) plan {
	d, state := contextwindow.Plan(in)
	return plan{in: in, d: d, state: state}
}

// nextInput returns the plan's input with the state that the plan leads to.
func (p plan) nextInput() contextwindow.Input {
	in := p.in
	in.State = p.state
	return in
}

// withRecalled returns the plan with the passages.
func (p plan) withRecalled(r *Recalled) plan {
	if len(r.passages)+len(p.in.Recalled) == 0 {
		return p
	}
	in := p.in
	in.Recalled = r.passages
	return newPlan(in)
}

// nextOrder returns the summary that the plan orders, now or ahead; nil = none.
func (p plan) nextOrder() *contextwindow.Order { return cmp.Or(p.d.Summarize, p.d.Prepare) }

// progress is the state of carrying out decisions for one turn.
type progress struct {
	background    bool         // no prompt waits for it
	manual        *manualOrder // requested by a person; nil = it was not
	lease         *summaryLease
	writer        writer
	deadline      time.Time // end of the wait for summaries
	versionChosen bool      // older versions have been considered
	failed        bool      // an optional summary failed: no further ones
	noGain        bool      // no summary would be smaller than what it replaces
	noLoop        bool      // the same for notes on the tool loop, or they failed
	leavesRefused bool      // see draft
	refusals      int       // orders that the provider refused as too long, or its filter
	orderLimit    int       // max message tokens of an order after a refusal; 0 = as many as the model takes
	calls         []core.ModelCall
	conflicts     int          // lost compare-and-sets
	committed     core.Summary // the last summary; empty = none
}

// fitTurn is Fit without recalled passages, warnings, notes and observer.
func (k *Compactor) fitTurn(ctx context.Context, t Turn) (Turn, plan, error) {
	p, done, err := k.firstPlan(t, contextwindow.BeforeCall)
	if through := t.standingThrough(p); err == nil && done && t.lacksStanding(through) {
		if t, err = k.withStanding(ctx, t, through); err == nil && len(t.Standing.inputs) > 0 {
			p, done, err = k.firstPlan(t, contextwindow.BeforeCall)
		}
	}
	if err != nil || done {
		return t, p, cmp.Or(err, floorError(p.d))
	}
	e := &progress{deadline: time.Now().Add(k.SummaryTime)}
	for {
		t, p, err = k.planAndExecute(ctx, t, e)
		if err == nil && p.d.Summarize != nil {
			if t.Waited && (e.asksModel(t) || time.Now().After(e.deadline)) {
				k.Enqueue(scopeOf(t), t.Session.ID)
				p = p.withoutSummary(notAwaited)
				return k.storeCut(ctx, t, p), p, floorError(p.d)
			}
			t, err = k.awaitSummary(ctx, t, e)
		} else if err == nil {
			return t, p, nil
		}
		switch {
		case err == nil:
		case !errors.Is(err, core.ErrStale):
			return t, p, err
		case e.conflicts >= maxReloads:
			// Not ErrStale: that would mean that another process owns the run.
			return t, p, &core.Error{Kind: core.ErrConflict, Code: "context_conflict",
				Message: "The conversation's summary kept changing while the message was processed. Send the message again later."}
		default:
			e.conflicts++
		}
	}
}

// planAndExecute plans the turn, with the current work on the session's summaries, and carries out everything but
// a summary of the conversation. It first activates an older version if that suits the turn's model better
// than the one in use.
func (k *Compactor) planAndExecute(ctx context.Context, t Turn, e *progress) (Turn, plan, error) {
	t, err := k.loadSummaryWork(ctx, t)
	if err != nil {
		return t, plan{}, err
	}
	if e.manual != nil {
		t.Work.Breaker.Until = nil // the model is called even if the breaker is open
	}
	if !e.versionChosen {
		if t, err = k.useOlder(ctx, t); err != nil {
			return t, plan{}, err
		}
		e.versionChosen = true
	}
	p, err := k.planTurn(ctx, t, e)
	if through := t.standingThrough(p); err == nil && t.lacksStanding(through) { // only now is it known what leaves the prompt
		if t, err = k.withStanding(ctx, t, through); err == nil {
			p, err = k.planTurn(ctx, t, e)
		}
	}
	if err != nil {
		return t, p, err
	}
	for {
		var err error
		switch {
		case p.d.Activate != nil:
			t, p, err = k.activateVersion(ctx, t, p)
		case p.d.Summarize == nil:
			return k.finishPlan(ctx, t, p, e)
		case p.d.Summarize.Kind == core.SummaryRun: // belongs to this run: no other process makes it
			t, p, err = k.compactLoop(ctx, t, p, e)
		default:
			return t, p, nil
		}
		if err != nil {
			return t, p, err
		}
	}
}

// planTurn plans the turn. If a summary is due, it first looks for versions that cover more.
func (k *Compactor) planTurn(ctx context.Context, t Turn, e *progress) (plan, error) {
	in, err := k.planInput(t)
	if err != nil {
		return plan{}, err
	}
	p := newPlan(k.withSummaryWork(ctx, in, t, e))
	if p.d.Prepare == nil && (p.d.Summarize == nil || p.d.Summarize.Kind == core.SummaryRun) {
		return p, nil
	}
	versions, err := k.Stores.Summaries.Versions(ctx, scopeOf(t), t.Session.ID)
	if err != nil {
		return plan{}, fmt.Errorf("versions of the summary: %w", err)
	}
	p.in.Versions = slices.DeleteFunc(versions, func(v core.SummaryVersion) bool { return v.ThroughSeq <= p.in.Summary.ThroughSeq })
	return newPlan(p.in), nil
}

// loadSummaryWork loads the current work on the session's summaries, and the turn again if that is older.
func (k *Compactor) loadSummaryWork(ctx context.Context, t Turn) (Turn, error) {
	work, err := k.Stores.Sessions.SummaryWork(ctx, scopeOf(t), t.Session.ID)
	if err != nil {
		return t, fmt.Errorf("load the session's summary work: %w", err)
	}
	if work.Revision != t.Session.PromptRevision {
		if t, err = k.reloadTurn(ctx, t); err != nil {
			return t, err
		}
	}
	t.Work = work
	return t, nil
}

// withSummaryWork adds the current work on the session's summaries to the input, and how
// much one call of the summary model takes.
func (k *Compactor) withSummaryWork(ctx context.Context, in contextwindow.Input, t Turn, e *progress) contextwindow.Input {
	work := t.Work
	if work.Prepared.Version > 0 {
		in.Versions = []core.SummaryVersion{work.Prepared}
	}
	k.jobs.mu.Lock()
	_, queued := k.jobs.bySession[t.Session.ID]
	k.jobs.mu.Unlock()
	in.Busy = e.lease == nil && (work.Busy || !e.background && queued)
	in.Resting = work.Breaker.Until != nil || e.failed
	in.NoSummary, in.NoLoop, in.Force = e.noGain, e.noLoop, e.manual != nil
	if e.background {
		in.Phase = contextwindow.AfterRun
	}
	// A summary model that cannot be used does not fail the conversation: the note says why there is none.
	if e.writer = (writer{kind: summarize.KindOf(t.Profile.Policy.Strategy)}); e.writer.kind.Model {
		e.writer.model, e.writer.note = k.summaryModel(ctx, t, t.Profile.Policy.SummaryModel)
	}
	if !in.Resting {
		in.OrderLimit = minKnown(e.orderLimit, k.orderLimit(in, t, e.writer))
	}
	return in
}

// finishPlan stores what the last decision changed and queues the summary that it wants prepared.
func (k *Compactor) finishPlan(ctx context.Context, t Turn, p plan, e *progress) (Turn, plan, error) {
	if p.d.Prepare != nil && !e.background {
		k.Enqueue(scopeOf(t), t.Session.ID)
	}
	if raw := p.state.Encode(); p.d.Compacted && p.d.Floor == nil && !bytes.Equal(raw, t.Session.PromptState) {
		err := k.applyChange(ctx, &t, core.ContextChange{PromptState: raw})
		if err != nil {
			return t, p, fmt.Errorf("store the prompt state: %w", err)
		}
	}
	return t, p, floorError(p.d)
}

// applyChange commits a change against the session as the turn knows it.
func (k *Compactor) applyChange(ctx context.Context, t *Turn, change core.ContextChange) error {
	change.SessionID, change.Expect = t.Session.ID, t.Session.PromptRevision
	session, events, err := k.Stores.Sessions.ApplyContext(ctx, scopeOf(*t), change)
	if err != nil {
		return err
	}
	k.Publisher.Publish(ctx, events)
	t.Session = session
	return nil
}

// makeNext makes the summary that the turn's plan orders, if it still does, commits it, and plans again.
// Where the provider or its filter refuses the order, it makes that of a smaller one. Without a prompt that waits,
// it makes summaries ahead, too.
func (k *Compactor) makeNext(ctx context.Context, t Turn, e *progress) (Turn, error) {
	for {
		t, p, err := k.planAndExecute(ctx, t, e)
		if err != nil || p.nextOrder() == nil || p.d.Summarize == nil && !e.background {
			return t, err
		}
		if t, _, err = k.summarizeOnce(ctx, t, p, e); !errors.Is(err, errRefused) {
			return t, err
		}
	}
}

// summarizeOnce makes the ordered summary in one call, commits it, and plans again. One that is ordered
// ahead is only stored: it changes no prompt. ErrRefused: a smaller order is due.
func (k *Compactor) summarizeOnce(ctx context.Context, t Turn, p plan, e *progress) (Turn, plan, error) {
	m := draft{order: *p.nextOrder(), writer: e.writer, ahead: p.d.Summarize == nil, calls: e.calls, leavesRefused: e.leavesRefused}
	if o := e.manual; o != nil { // parts are made by a model only: without one, a single summary covers everything
		m.order.Focus, m.order.Strict = o.focus, o.last.Load() != nil || m.order.ThroughSeq < o.through
	}
	if !e.background && t.Work.Breaker.Until != nil && m.writer.note == "" {
		m.writer.note = breakerOpen
	}
	e.calls = nil
	m, err := k.makeSummary(ctx, t, p, m)
	filtered := llm.IsKind(err, llm.KindContentFilter) // perhaps one message of many
	if (filtered || llm.IsKind(err, llm.KindInvalid)) && !e.leavesRefused && slices.ContainsFunc(messagesThrough(t.History, m.order.ThroughSeq), core.Message.WasRefused) {
		e.leavesRefused, e.calls = true, m.calls
		return t, p, errRefused
	}
	if (filtered || llm.IsKind(err, llm.KindContextLength)) && e.refusals < maxRefused {
		if limit := llm.AsError(err).Limit; limit > 0 {
			k.Calibrator.Told(e.writer.model.Info().Name, "", limit)
		}
		e.refusals++
		e.orderLimit, e.calls = max(m.order.Tokens/2, 1), m.calls
		return t, p, errRefused
	}
	filtered = filtered && e.manual == nil
	if errors.Is(err, summarize.ErrFailed) && (filtered || !m.order.Strict) {
		// The prompt would not fit otherwise: the summary is made without the model. It is not bound by the size
		// of a model call and covers everything that must go, but not what a filter may take in a later order: that
		// one has other texts, and a refusal of these is no failure of the model.
		in := p.in
		in.OrderLimit = 0
		if all := newPlan(in); !filtered && all.d.Summarize != nil && all.d.Summarize.Kind == core.SummaryRolling {
			p = all
		}
		m.order, m.writer = *p.nextOrder(), writer{note: fallback + m.failure}
		m.order.Strict, m.ahead = false, p.d.Summarize == nil
		if m, err = k.makeSummary(ctx, t, p, m); filtered {
			m.failure = ""
		}
	}
	switch {
	case errors.Is(err, summarize.ErrNoGain), errors.Is(err, summarize.ErrFailed):
		m.err = err
		return k.continueWithout(ctx, t, p, m, e)
	case err != nil:
		return t, p, err
	}
	return k.commitDraft(ctx, t, p, m, e)
}

// errRefused says that the provider refused the order and another one is due.
var errRefused = errors.New("the provider refused the order")

// maxRefused bounds how many consecutive orders the provider may refuse. Each
// has half as many tokens as the one before.
const maxRefused = 2

// floorError returns the decision's refusal as an error that may be shown to users.
func floorError(d contextwindow.Decision) error {
	if d.Floor == nil {
		return nil
	}
	e := core.Errorf(core.ErrContextFloor, "%s", d.Floor.Error())
	e.Code = "context_floor"
	return e
}
