package compaction

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"bobbin/app/core"
)

// commitDraft commits the change that m.toChange returns. If the session was changed
// meanwhile by something that the summary does not depend on, it computes the change again
// without another model call. ErrStale: the summary depends on what changed.
func (k *Compactor) commitDraft(ctx context.Context, t Turn, p plan, m draftSummary, e *progress) (Turn, plan, error) {
	for {
		next, c := m.toChange(t, p)
		err := k.applyChange(ctx, &t, c)
		if e.manual && isRequestAnswered(err) {
			ctx = core.WithoutKeyedWork(ctx)
			err = k.applyChange(ctx, &t, c)
		}
		if errors.Is(err, core.ErrStale) && e.conflicts < maxReloads {
			e.conflicts++
			fresh, again, ok, err := k.revalidateDraft(ctx, t, p, m, e)
			if err != nil {
				return t, p, err
			}
			if ok {
				t, p = fresh, again
				continue
			}
		}
		k.reportCommit(ctx, Commit{Turn: t, Summary: m.summary, Before: p.d, After: next.d, Err: err})
		if err != nil {
			if errors.Is(err, core.ErrStale) {
				k.recordLostCalls(ctx, t, m.calls)
			}
			return t, p, fmt.Errorf("commit the summary: %w", err)
		}
		t.History = messagesAfter(t.History, t.Session.SummaryThroughSeq)
		e.committed = m.summary
		e.committed.Version, e.committed.ActivatedAt = t.Session.SummaryVersion, t.Session.LastSummarizedAt
		return t, next, nil
	}
}

// isRequestAnswered reports whether a commit was refused because its request already has an
// answer: the work that continues behind the answer no longer belongs to the request.
func isRequestAnswered(err error) bool {
	var e *core.Error
	return errors.As(err, &e) && e.Code == core.CodeInProgress
}

// revalidateDraft reloads the turn and reports whether it can still use the summary: it must
// extend the summary in use and cover the messages that it was made from, unedited.
func (k *Compactor) revalidateDraft(ctx context.Context, t Turn, p plan, m draftSummary, e *progress) (Turn, plan, bool, error) {
	fresh, err := k.reloadTurn(ctx, t)
	if err != nil {
		return t, p, false, err
	}
	unchanged := slices.EqualFunc(messagesThrough(fresh.History, m.order.ThroughSeq), messagesThrough(t.History, m.order.ThroughSeq), isSameText)
	if fresh.Session.SummaryVersion != t.Session.SummaryVersion || !unchanged {
		return t, p, false, nil
	}
	in, err := k.planInput(ctx, fresh)
	if err != nil {
		return t, p, false, err
	}
	in = k.withSummaryWork(ctx, in, fresh, e)
	in.Summarized, in.Force = p.in.Summarized, p.in.Force
	return fresh, newPlan(in), true, nil
}

// isSameText reports whether a is the message b, not edited since.
func isSameText(a, b core.Message) bool {
	return a.ID == b.ID && (a.RevisedAt == nil) == (b.RevisedAt == nil) && (a.RevisedAt == nil || a.RevisedAt.Equal(*b.RevisedAt))
}

// recordLostCalls records model calls that led to no summary without being a failure.
func (k *Compactor) recordLostCalls(ctx context.Context, t Turn, calls []core.ModelCall) {
	if len(calls) == 0 {
		return
	}
	if _, err := k.Stores.Sessions.SummaryFailed(ctx, scopeOf(t), core.SummaryFailure{SessionID: t.Session.ID, ModelCalls: calls}); err != nil {
		k.Logger.WarnContext(ctx, "model calls of a summary not recorded", "session_id", t.Session.ID, "err", err)
	}
}

// activateVersion activates the version that the plan names and plans again. It calls no
// model.
func (k *Compactor) activateVersion(ctx context.Context, t Turn, p plan) (Turn, plan, error) {
	a, in := *p.d.Activate, p.in
	s, err := k.loadVersion(ctx, t, a.SummaryVersion)
	if err != nil {
		return t, p, err
	}
	in.State = p.state
	activated, err := k.withSetups(ctx, t.withNative(s.Native))
	if err != nil {
		return t, p, err
	}
	if t.Setups = activated.Setups; k.nativeOf(activated) != nil {
		a.Tokens, a.KeepsThoughts, a.Frozen = s.Native.Tokens, len(s.Native.Prefixes) > 0, k.frozenFor(activated, s.Native)
		in.Setups = activated.Setups
	}
	next := newPlan(in.Activated(a))
	s.State, s.Trigger = core.SummaryActive, a.Trigger
	err = k.applyChange(ctx, &t, core.ContextChange{Activate: &s.Version, PromptState: next.state.Encode(), Events: []core.Event{
		t.newEvent(core.EventContextCompleted, core.ContextData{
			Kind: s.Kind, TokensBefore: p.d.Total, TokensAfter: next.d.Total, MessagesCovered: s.MessagesCovered, Trigger: s.Trigger,
		}),
	}})
	k.reportCommit(ctx, Commit{Turn: t, Summary: s, Before: p.d, After: next.d, Err: err})
	if err != nil {
		return t, p, fmt.Errorf("activate version %d of the summary: %w", s.Version, err)
	}
	t.History, t.Work.Prepared = messagesAfter(t.History, s.ThroughSeq), core.SummaryVersion{}
	return t, next, nil
}

// continueWithoutSummary continues without an optional summary. It only records the failure
// and its reason; the prompt stays as it is.
func (k *Compactor) continueWithoutSummary(ctx context.Context, t Turn, p plan, m draftSummary, e *progress) (Turn, plan, error) {
	e.failed = true
	in := p.in
	in.Resting = true
	if m.failure == "" { // the model was not asked
		return t, newPlan(in), nil
	}
	k.Logger.WarnContext(ctx, "summary failed, context unchanged", "session_id", t.Session.ID, "agent", t.Profile.Agent.Name,
		"trigger", m.order.Trigger, "ahead", m.ahead, "reason", m.failure)
	err := k.recordUnused(ctx, t, core.SummaryFailure{
		SessionID: t.Session.ID, Reason: m.failure, ModelCalls: m.calls, Events: []core.Event{
			t.newEvent(core.EventContextFailed, core.ContextData{
				Kind: m.order.Kind, Trigger: m.order.Trigger, Reason: "no summary was made: " + m.failure, Ahead: m.ahead,
			}),
		},
	})
	if err != nil {
		return t, p, fmt.Errorf("record the failed summary: %w", err)
	}
	return t, newPlan(in), nil
}

// recordUnused stores what became of a summary that is not made, and publishes its events.
func (k *Compactor) recordUnused(ctx context.Context, t Turn, f core.SummaryFailure) error {
	events, err := k.Stores.Sessions.SummaryFailed(ctx, scopeOf(t), f)
	k.Publisher.Publish(ctx, events)
	return err
}
