package nodes

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// What the next prompts of a run leave out, as the provider or the model did not cope with it.
const (
	leftOutMedia = "images and files" // the provider cannot read one: they are described
	leftOutTools = "tools"            // the model calls them although it must not: their turns become text
	// The provider has refused each before, and answered no prompt that has it.
	leftOutRefused = "the messages that got no answer before: edit one, and it is sent again"
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
	switch {
	case c.calledAnyway && e.Kind == llm.KindEmpty:
		out = leftOutTools
	case e.Kind == llm.KindInvalid && !named && !t.turn.LeavesRefused && t.turn.HasRefused():
		out = leftOutRefused
	case c.sent.Media > 0 && e.Status >= 400 && e.Kind != llm.KindAuth && e.Kind != llm.KindRateLimit && (named || e.Kind == llm.KindInvalid && !c.mayBeTooLong):
		out = leftOutMedia
	case e.Kind == llm.KindContentFilter && c.sent.HasEarlier():
		out = leftOutEarlier
	}
	if slices.Contains(t.leavesOut, out) {
		return ""
	}
	return out
}

// leaveOut prepares a try without what this one failed for. If it is answered, a warning says so.
func (n *LLM) leaveOut(ctx context.Context, s *AgentState, t *attempts, c call, e *llm.Error) {
	what := t.canLeaveOut(c, e)
	t.leavesOut = append(slices.Clip(t.leavesOut), what)
	n.Logger.WarnContext(ctx, "prompt sent again without what the model did not take", "run_id", s.Run.ID, "model", c.modelName(), "without", what, "err", e.Message)
	if what == leftOutTools {
		return
	}
	t.turn.LeavesRefused = t.turn.LeavesRefused || what == leftOutRefused
	if what == leftOutMedia {
		blind := llm.WithoutMedia(s.Profile.Model)
		s.Profile.Model, t.turn.Profile.Model = blind, blind
	}
	t.warning = &core.ContextData{
		TokensBefore: c.sent.Used(c.decision), Trigger: "refused",
		Reason: fmt.Sprintf("%s refused the prompt%s. It was sent again without %s.", c.modelName(), quoteProvider(e), strings.Join(t.leavesOut, ", and without ")),
	}
}
