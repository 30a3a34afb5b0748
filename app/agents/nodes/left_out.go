package nodes

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
)

// What the next prompts of a run leave out, as the provider or the model did not cope with it.
const (
	leftOutMedia = "images and files" // the provider cannot read one: they are described
	leftOutTools = "tools"            // the model calls them although it must not: their turns become text
	// A provider has refused each once.
	leftOutRefused = "the messages that were refused before: edit one, and it is sent again"
	leftOutSummary = "the summary, which covers a message that was refused before"
	// A filter may object to any of them.
	leftOutEarlier = "the messages before it: delete or edit the one that the filter objects to, and the others are sent again"
)

// mediaWords are how providers name images and files when they refuse one.
var mediaWords = regexp.MustCompile(`(?i)image|picture|photo|pdf|\bfiles?\b|document|media|multi-?modal|vision|attachment`)

// canLeaveOut returns what the next try may leave out after a call that failed; empty = nothing, or
// nothing more. One whose prompt may be too long is tried shorter before images are left out that the provider
// did not name.
func (t *attempts) canLeaveOut(c call, e *llm.Error) string {
	var out string
	named := c.sent.Media > 0 && mediaWords.MatchString(e.Code+" "+e.Message)
	_, hasRefused := c.decision.Without(t.wasRefused, true)
	isRefusal := e.Kind == llm.KindInvalid && !named || e.Kind == llm.KindContentFilter
	switch {
	case c.calledAnyway && e.Kind == llm.KindEmpty:
		out = leftOutTools
	case isRefusal && hasRefused:
		out = leftOutRefused
	case isRefusal && len(t.refused) > 0 && t.refused[0].Seq <= t.turn.Session.SummaryThroughSeq && !c.decision.LacksSummary:
		out = leftOutSummary
	case c.sent.Media > 0 && e.Status >= 400 && e.Kind != llm.KindAuth && e.Kind != llm.KindRateLimit && (named || e.Kind == llm.KindInvalid && !c.mayBeTooLong):
		out = leftOutMedia
	case e.Kind == llm.KindContentFilter && slices.Max(c.sent.Of[contextwindow.SectionSummary:contextwindow.SectionRun]) > 0:
		out = leftOutEarlier
	}
	if slices.Contains(t.leavesOut, out) {
		return ""
	}
	return out
}

// loadRefused loads which turns of the session a provider has refused, after it refused a prompt again.
func (n *LLM) loadRefused(ctx context.Context, s *AgentState, t *attempts, e *llm.Error) (err error) {
	if t.refused == nil && (e.Kind == llm.KindInvalid || e.Kind == llm.KindContentFilter) {
		t.refused, err = n.Messages.Refused(ctx, s.Run.Tenant(), s.Session.ID)
		for i := 1; i < len(t.refused); i++ {
			t.refused[i].Until = max(t.refused[i].Until, t.refused[i-1].Until)
		}
	}
	return err
}

// checkHalf returns no error for an answer that a filter cut off, which is one, unless it may be whole without messages
// that were refused before.
func (n *LLM) checkHalf(ctx context.Context, s *AgentState, t *attempts, c call) error {
	e := &llm.Error{Kind: llm.KindContentFilter, Provider: s.Profile.Model.Info().Provider, Message: "the answer was cut off"}
	if err := n.loadRefused(ctx, s, t, e); err != nil || t.canLeaveOut(c, e) != leftOutRefused {
		return err
	}
	return e
}

// withoutRefused returns the decision without what the tries leave out of the conversation.
func (t *attempts) withoutRefused(d contextwindow.Decision) contextwindow.Decision {
	isAlone := slices.Contains(t.leavesOut, leftOutEarlier)
	lacksSummary := isAlone || slices.Contains(t.leavesOut, leftOutSummary)
	if lacksSummary || slices.Contains(t.leavesOut, leftOutRefused) {
		d, _ = d.Without(func(seq int64) bool { return isAlone || t.wasRefused(seq) }, !lacksSummary)
	}
	return d
}

func (t *attempts) wasRefused(seq int64) bool {
	i, found := slices.BinarySearchFunc(t.refused, seq, func(turn core.RefusedTurn, seq int64) int { return int(turn.Seq - seq) })
	return found || i > 0 && seq < t.refused[i-1].Until
}

// leaveOut prepares a try without what this one failed for. If it is answered, a warning says so.
func (n *LLM) leaveOut(ctx context.Context, s *AgentState, t *attempts, c call, e *llm.Error) {
	what := t.canLeaveOut(c, e)
	t.leavesOut = append(slices.Clip(t.leavesOut), what)
	n.Logger.WarnContext(ctx, "prompt sent again without what the model did not take", "run_id", s.Run.ID, "model", c.modelName(), "without", what, "err", e.Message)
	if what == leftOutTools {
		return
	}
	if what == leftOutMedia {
		blind := llm.WithoutMedia(s.Profile.Model)
		s.Profile.Model, t.turn.Profile.Model = blind, blind
	}
	t.warning = &core.ContextData{
		TokensBefore: c.sent.Used(c.decision), Trigger: "refused",
		Reason: fmt.Sprintf("%s refused the prompt%s. It was sent again without %s.", c.modelName(), quoteProvider(e), strings.Join(t.leavesOut, ", and without ")),
	}
}
