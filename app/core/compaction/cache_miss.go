package compaction

import (
	"context"
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
)

// heldShare is the part of what a provider had in its cache that it must read for the cache to
// count as kept: counts of the same tokens may differ a little.
const heldShare = 0.9

// ComparePrompt compares the request of a decision, which was answered, with the session's previous
// one. It returns the marks of the request for the next comparison; miss is nil if a cache could
// have all of the previous one, and had it as far as the answer says.
func (k *Compactor) ComparePrompt(ctx context.Context, t Turn, d contextwindow.Decision, req llm.Request, res llm.Response) (marks llm.PromptMarks, miss *core.CacheMiss) {
	before := llm.DecodeMarks(t.Session.PromptMarks)
	marks = llm.MarkPrompt(t.Profile.Model.Info(), req).WithAnswer(res.ID)
	marks.Summary = t.Session.SummaryVersion
	if res.Usage != nil {
		marks.Cached = res.Usage.CacheReadTokens + res.Usage.CacheWriteTokens
	}
	m := core.CacheMiss{}
	m.Part, m.Index, m.Within = before.Difference(marks)
	switch m.Part {
	case core.PromptSame:
		if m.Reason = unseenReason(before, res); m.Reason == "" {
			return marks, nil
		}
	case core.PromptModel:
		m.Reason = core.CacheOtherModel
	case core.PromptOfMessage:
		m = k.explainMessage(ctx, t, d, before, m)
	default:
		m.Reason = core.CacheConfiguration
		if m.Part == core.PromptSystem && before.System == marks.System && (before.Summary != marks.Summary || leavesOut(d)) {
			m.Reason = core.CacheCompaction
		}
	}
	if res.Diagnosis != nil {
		m.Provider = res.Diagnosis.Words
	}
	k.Observer.CacheMissed(ctx, t, m)
	return marks, &m
}

// unseenReason returns why a cache missed although the prompts are the same so far; empty = it did
// not.
func unseenReason(before llm.PromptMarks, res llm.Response) core.CacheReason {
	switch {
	case res.Diagnosis != nil && res.Diagnosis.Missed:
		return core.CacheReported
	case res.Usage != nil && float64(res.Usage.CacheReadTokens) < heldShare*float64(before.Cached):
		return core.CacheExpired
	default:
		return ""
	}
}

// leavesOut reports whether the decision leaves out messages.
func leavesOut(d contextwindow.Decision) bool {
	return slices.ContainsFunc(slices.Concat(d.History, d.Run), func(s contextwindow.Slot) bool { return s.Place == core.PlaceLeftOut })
}

// explainMessage completes a miss whose first difference is a message.
func (k *Compactor) explainMessage(ctx context.Context, t Turn, d contextwindow.Decision, before llm.PromptMarks, m core.CacheMiss) core.CacheMiss {
	last := m.Index + m.Within - 1
	if m.Within == 1 {
		m.Within = 0
	}
	prompt, err := k.assemble(ctx, t, d)
	if err != nil || last > len(prompt.Messages) {
		m.Reason = core.CacheMessages
		return m
	}
	first := prompt.Messages[m.Index-1]
	m.MessageID = first.ID
	for _, s := range slices.Concat(d.History, d.Run) {
		if s.ID == first.ID {
			m.Seq = s.Seq
		}
	}
	m.Reason = reasonOf(prompt.Messages[m.Index-1:last], before.Summary != t.Session.SummaryVersion)
	if m.Index <= before.Passing && before.Passing <= last {
		m.Reason = core.CacheRecalled
	}
	return m
}

// reasonOf returns why the first of the messages that is not as it was differs.
func reasonOf(messages []contextwindow.PromptMessage, otherSummary bool) core.CacheReason {
	for _, m := range messages {
		switch {
		case otherSummary, m.Bare, m.Place == core.PlaceCovered, m.Place == core.PlaceMasked, m.Place == core.PlaceShortened:
			return core.CacheCompaction
		case m.Place == core.PlaceRecalled:
			return core.CacheRecalled
		case m.Place == core.PlaceStanding:
			return core.CacheStanding
		}
	}
	return core.CacheMessages
}
