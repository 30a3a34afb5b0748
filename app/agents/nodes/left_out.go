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

// leftOut is what the prompt of a next try leaves out, as the provider or the model did not cope
// with it.
type leftOut string

// What can be left out.
const (
	leftOutMedia leftOut = "images and files" // the provider cannot read one: they are described
	leftOutTurns leftOut = "the messages that were never answered"
	leftOutTools leftOut = "tools" // the model calls them although it must not: their turns become text
)

// noAnswerMark stands for a turn that is left out.
const noAnswerMark = "[What stood here was never answered, and is left out: a filter of the provider may have refused it.]"

// mediaWords are how providers name images and files when they refuse one.
var mediaWords = regexp.MustCompile(`(?i)image|picture|photo|pdf|\bfiles?\b|document|media|multi-?modal|vision|attachment`)

// canLeaveOut returns what the next try may leave out after a call that failed; empty = nothing, or
// nothing more.
func (t *attempts) canLeaveOut(c call, e *llm.Error) leftOut {
	var out leftOut
	switch {
	case c.calledAnyway && e.Kind == llm.KindEmpty:
		out = leftOutTools
	case c.sent.Media > 0 && e.Status >= 400 && e.Kind != llm.KindAuth && e.Kind != llm.KindRateLimit && mediaWords.MatchString(e.Code+" "+e.Message):
		out = leftOutMedia
	case e.Kind == llm.KindContentFilter && e.Status >= 400 && c.unanswered:
		out = leftOutTurns
	}
	if slices.Contains(t.leavesOut, out) {
		return ""
	}
	return out
}

// leaveOut prepares a try without what this one failed for.
func (n *LLM) leaveOut(ctx context.Context, s *AgentState, t *attempts, c call, e *llm.Error) error {
	what := t.canLeaveOut(c, e)
	t.leavesOut = append(t.leavesOut, what)
	n.Logger.WarnContext(ctx, "prompt sent again without what the model did not take", "run_id", s.Run.ID, "model", c.modelName(), "without", string(what), "err", e.Message)
	if what == leftOutMedia {
		blind := llm.WithoutMedia(s.Profile.Model)
		s.Profile.Model, t.turn.Profile.Model = blind, blind
	}
	if what == leftOutTools {
		return nil
	}
	return n.warn(ctx, *s, core.ContextData{
		TokensBefore: c.sent.Used(c.decision), Trigger: "refused",
		Reason: fmt.Sprintf("%s refused the prompt%s. It is sent again without %s.", c.modelName(), quoteProvider(e), what),
	})
}

// withoutUnanswered returns the messages with a mark in the place of each turn before the message
// that asks now, if the turn does not end with an answer; found says that there is one.
func withoutUnanswered(messages []llm.Message, asked core.Message) (out []llm.Message, found bool) {
	last := len(messages) - 1
	for last > 0 && !(messages[last].Role == core.RoleUser && strings.Contains(messages[last].Content, asked.Content)) {
		last--
	}
	for begin := 0; begin < last; {
		end := begin + 1
		for end < last && messages[end].Role != core.RoleUser {
			end++
		}
		turn := messages[begin:end]
		if final := turn[len(turn)-1]; turn[0].Role == core.RoleUser && (final.Role != core.RoleAssistant || len(final.ToolCalls) > 0) {
			found, turn = true, []llm.Message{{Role: core.RoleUser, Content: noAnswerMark}}
		}
		out = append(out, turn...)
		begin = end
	}
	return append(out, messages[max(last, 0):]...), found
}
