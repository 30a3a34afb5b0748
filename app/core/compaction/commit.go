package compaction

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/summarize"
)

// commitDraft stores the summary, as the one in use or as a prepared one, and returns the next plan. If the session was changed
// meanwhile by something that a summary of the conversation does not depend on, it computes the change
// again without another model call. ErrStale: the summary depends on what changed.
func (k *Compactor) commitDraft(ctx context.Context, t Turn, p plan, m draft, e *progress) (Turn, plan, error) {
	for {
		next, change := p, core.ContextChange{Summary: &m.summary, ModelCalls: m.calls}
		if m.ahead { // it changes no prompt
			m.summary.State = core.SummaryPrepared
		} else {
			if v := k.versionOf(t, m.summary); m.order.Kind == core.SummaryRun {
				next = newPlan(p.nextInput().After(m.order, v.Tokens, v.Messages))
			} else {
				v.Version = p.in.Summary.Version + 1 // it gets its number when stored
				next = newPlan(p.nextInput().Activated(v))
			}
			change = m.contextChange(t, p.d, next)
		}
		if setup, ok := k.promptSetup(t); ok && m.summary.Native != nil && m.summary.Native.Frozen == setup.Hash { // else it is stored
			change.Setup = &setup
		}
		err := k.applyChange(ctx, &t, change)
		// A request that has an answer refuses it: the work behind the answer no longer belongs to the request.
		var answered *core.Error
		if e.manual != nil && errors.As(err, &answered) && answered.Code == core.CodeInProgress {
			ctx = core.WithoutKeyedWork(ctx)
			err = k.applyChange(ctx, &t, change)
		}
		if errors.Is(err, core.ErrStale) && e.conflicts < maxReloads && m.order.Kind == core.SummaryRolling {
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
		if errors.Is(err, core.ErrStale) && len(m.calls) > 0 {
			if _, lost := k.Stores.Sessions.SummaryFailed(ctx, scopeOf(t), core.SummaryFailure{SessionID: t.Session.ID, ModelCalls: m.calls}); lost != nil {
				k.Logger.WarnContext(ctx, "model calls of a summary not recorded", "session_id", t.Session.ID, "err", lost)
			}
		}
		if err != nil {
			return t, p, fmt.Errorf("commit the summary: %w", err)
		}
		t = t.behindSummary()
		if e.committed = m.summary; m.ahead {
			k.Publisher.Delta(ctx, t.newEvent(core.EventContextCompleted, core.ContextData{Kind: m.order.Kind, Trigger: m.order.Trigger, Ahead: true}))
		}
		e.committed.Version, e.committed.ActivatedAt = t.Session.SummaryVersion, t.Session.LastSummarizedAt
		return t, next, nil
	}
}

// revalidateDraft reloads the turn and reports whether it can still use the summary: it must
// extend the summary in use and cover the messages that it was made from, unedited.
func (k *Compactor) revalidateDraft(ctx context.Context, t Turn, p plan, m draft, e *progress) (Turn, plan, bool, error) {
	fresh, err := k.reloadTurn(ctx, t)
	if err != nil {
		return t, p, false, err
	}
	isSame := func(a, b core.Message) bool {
		return a.ID == b.ID && (a.RevisedAt == nil) == (b.RevisedAt == nil) && (a.RevisedAt == nil || a.RevisedAt.Equal(*b.RevisedAt))
	}
	unchanged := slices.EqualFunc(messagesThrough(fresh.History, m.order.ThroughSeq), messagesThrough(t.History, m.order.ThroughSeq), isSame)
	if fresh.Session.SummaryVersion != t.Session.SummaryVersion || !unchanged {
		return t, p, false, nil
	}
	in, err := k.planInput(fresh)
	if err != nil {
		return t, p, false, err
	}
	in = k.withSummaryWork(ctx, in, fresh, e)
	in.Summarized = p.in.Summarized
	return fresh, newPlan(in), true, nil
}

// behindSummary returns the turn with the messages that its summary has come to cover out of its history.
func (t Turn) behindSummary() Turn {
	n := len(messagesThrough(t.History, t.Session.SummaryThroughSeq))
	for _, m := range t.History[:n] {
		if m.Pinned {
			t.Pinned = append(t.Pinned[:len(t.Pinned):len(t.Pinned)], m)
		}
	}
	t.History = slices.Clone(t.History[n:]) // the others need no memory
	return t
}

// activateVersion activates the version that the plan names and plans again. It calls no model.
func (k *Compactor) activateVersion(ctx context.Context, t Turn, p plan) (Turn, plan, error) {
	a, in := *p.d.Activate, p.nextInput()
	s, err := k.loadVersion(ctx, t, a.SummaryVersion)
	if err != nil {
		return t, p, err
	}
	activated, err := k.withSetups(ctx, t.withNative(s.Native))
	if err != nil {
		return t, p, err
	}
	t.Setups, in.Setups = activated.Setups, activated.Setups
	next := newPlan(in.Activated(k.versionOf(t, s)))
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
	t = t.behindSummary()
	t.Work.Prepared = core.SummaryVersion{}
	return t, next, nil
}

// continueWithout continues without a summary that failed, or that would not be smaller than what it
// replaces. It records the reason; the prompt stays as it is, and the next one may order it again. A
// manual request gets an error, and no event for a summary that gains nothing.
func (k *Compactor) continueWithout(ctx context.Context, t Turn, p plan, m draft, e *progress) (Turn, plan, error) {
	if ctx.Err() != nil {
		return t, p, context.Cause(ctx)
	}
	in := p.in // with the stored state: a plan that changes nothing else would not store the order's
	isLoop, noGain := m.order.Kind == core.SummaryRun, errors.Is(m.err, summarize.ErrNoGain)
	unused := core.SummaryFailure{SessionID: t.Session.ID, ModelCalls: m.calls}
	kind, data := core.EventContextFailed, core.ContextData{Kind: m.order.Kind, Trigger: m.order.Trigger, Ahead: m.ahead}
	switch {
	case noGain:
		kind, data.Reason = core.EventContextSkipped, summarize.ErrNoGain.Error()
	case isLoop:
		data.Reason = "the older part of the tool loop could not be replaced by notes" // the log has the cause
	default:
		unused.Reason, data.Reason = m.failure, "no summary was made: "+m.failure
	}
	var refused error
	if e.manual != nil && noGain {
		refused = core.Errorf(core.ErrUnprocessable, "there is nothing to summarize: a summary would not be smaller than the %d messages it replaces", m.order.Messages)
	} else if e.manual != nil {
		refused = core.Errorf(core.ErrUnavailable, "no summary was made because its model failed: try again later")
	}
	switch {
	case isLoop:
		e.noLoop, in.NoLoop = true, true
	case noGain:
		e.noGain, in.NoSummary, in.Force = true, true, false
	default:
		if e.failed, in.Resting = true, true; m.failure == "" { // the model was not asked
			return t, newPlan(in), refused
		}
	}
	if !noGain {
		k.Logger.WarnContext(ctx, "summary failed, context unchanged", "session_id", t.Session.ID, "run_id", t.RunID, "agent", t.Profile.Agent.Name,
			"kind", m.order.Kind, "trigger", m.order.Trigger, "ahead", m.ahead, "reason", m.failure, "err", m.err)
	}
	if !noGain || e.manual == nil {
		unused.Events = []core.Event{t.newEvent(kind, data)}
	}
	events, err := k.Stores.Sessions.SummaryFailed(ctx, scopeOf(t), unused)
	k.Publisher.Publish(ctx, events)
	if err != nil && isLoop {
		k.Logger.WarnContext(ctx, "event not stored", "session_id", t.Session.ID, "err", err)
	} else if err != nil {
		return t, p, fmt.Errorf("record the summary that was not made: %w", err)
	}
	return t, newPlan(in), refused
}

// loadVersion returns a version with its text. ErrStale: it no longer exists.
func (k *Compactor) loadVersion(ctx context.Context, t Turn, v core.SummaryVersion) (core.Summary, error) {
	found, err := k.Stores.Summaries.Find(ctx, scopeOf(t), t.Session.ID, []core.SummaryID{v.ID})
	if err == nil && len(found) == 0 {
		err = core.Errorf(core.ErrStale, "version %d of the summary no longer exists", v.Version)
	}
	if err != nil {
		return core.Summary{}, fmt.Errorf("load version %d of the summary: %w", v.Version, err)
	}
	return found[0], nil
}

// withOlderVersion returns the turn with an older version of the summary, where the one in use was
// made for a smaller model and the older one is enough for this; nothing is stored. It
// reports false if the turn stays as it is.
func (k *Compactor) withOlderVersion(ctx context.Context, t Turn) (Turn, bool, error) {
	if t.Session.SummaryMadeFor == 0 {
		return t, false, nil
	}
	in, err := k.planInput(t)
	if err != nil || !contextwindow.MayUseOlder(in) {
		return t, false, err
	}
	versions, err := k.Stores.Summaries.Versions(ctx, scopeOf(t), t.Session.ID)
	if err != nil {
		return t, false, fmt.Errorf("list versions of the summary: %w", err)
	}
	v := contextwindow.OlderVersion(in, versions)
	if v.Version == t.Session.SummaryVersion {
		return t, false, nil
	}
	var to core.Summary
	if v.Version > 0 {
		if to, err = k.loadVersion(ctx, t, v); err != nil {
			return t, false, err
		}
	}
	t, err = k.withEarlierVersion(ctx, t, to)
	return t, true, err
}

// withEarlierVersion returns the turn with an earlier version of the summary, or none;
// nothing is stored. Notes on tool loops that the cursor had passed are in use again.
func (k *Compactor) withEarlierVersion(ctx context.Context, t Turn, to core.Summary) (Turn, error) {
	loops, err := k.Stores.Summaries.Loops(ctx, scopeOf(t), t.Session.ID, to.ThroughSeq)
	if err != nil {
		return t, fmt.Errorf("load notes on tool loops: %w", err)
	}
	messages, err := k.Stores.Messages.GetMessagesAfter(ctx, scopeOf(t), t.Session.ID, to.ThroughID)
	if err != nil {
		return t, fmt.Errorf("load the messages behind the cursor: %w", err)
	}
	state := contextwindow.PromptState{}
	for _, n := range loops {
		state.Loops = append(state.Loops, contextwindow.LoopRangeOf(n))
	}
	t = t.withSummary(to, state).withNotes(loops...)
	t.Pinned, t.History = messagesThrough(t.Pinned, to.ThroughSeq), BeforeRun(messages, t.Run)
	return k.withSetups(ctx, t)
}

// useOlder activates an older version where there is one (withOlderVersion).
func (k *Compactor) useOlder(ctx context.Context, t Turn) (Turn, error) {
	chosen, changed, err := k.withOlderVersion(ctx, t)
	if err != nil || !changed {
		return t, err
	}
	before, version := t.Session, chosen.Session.SummaryVersion
	chosen.Session.PromptRevision = before.PromptRevision
	err = k.applyChange(ctx, &chosen, core.ContextChange{Activate: &version, PromptState: chosen.Session.PromptState, Events: []core.Event{
		t.newEvent(core.EventContextCompleted, core.ContextData{
			Kind: core.SummaryRolling, Trigger: core.TriggerLargerModel, MessagesCovered: chosen.Session.SummarizedCount,
			Reason: olderReason(before.SummaryVersion, version),
		}),
	}})
	if err != nil {
		return t, fmt.Errorf("reactivate version %d of the summary: %w", version, err)
	}
	k.Logger.InfoContext(ctx, "older summary reactivated", "session_id", t.Session.ID, "model", t.Profile.Model.Info().Name,
		"version", version, "instead_of", before.SummaryVersion)
	k.checkCoverage(ctx, chosen)
	return chosen, nil
}

// olderReason says why an older version is in use.
func olderReason(from, to int) string {
	if to == 0 {
		return fmt.Sprintf("nothing is summarized any more: version %d was made for a smaller model, and everything fits this one", from)
	}
	return fmt.Sprintf("version %d is in use again: version %d was made for a smaller model, and what version %d does not cover fits this one", to, from, to)
}

// summaryReason says what the version in the turn covers and which models use it; empty = there is none.
func (k *Compactor) summaryReason(t Turn) string {
	s := t.Session
	if s.SummaryVersion == 0 {
		return ""
	}
	reason := fmt.Sprintf("Version %d covers the first %s messages", s.SummaryVersion, core.Number(s.SummarizedCount))
	if slices.Contains(t.Profile.Agent.Tools, core.ToolSearchHistory) {
		reason += ", which the agent can search"
	}
	if isNative(t) {
		if why := k.whyPlain(t, s.NativeSummary); why != "" {
			reason += ". Prompts have its words and no native summary: " + why
		} else {
			reason += ". Prompts have the provider's own summary of them in place of its words"
		}
	}
	if s.SummaryMadeFor == 0 {
		return reason + ". It is valid for every model."
	}
	return reason + fmt.Sprintf(". It was made for a trigger of %s tokens (cl100k_base): models with a larger trigger use an older version if that is enough.", core.Number(s.SummaryMadeFor))
}
