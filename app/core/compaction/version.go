package compaction

import (
	"context"
	"fmt"
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
)

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

// summaryReason says what the version in the turn covers and which models use it; empty =
// there is none.
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
