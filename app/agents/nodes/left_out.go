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

// leftOut is what the prompt of a next try leaves out, as the provider or the model did not cope
// with it.
type leftOut string

// What can be left out.
const (
	leftOutMedia leftOut = "images and files" // the provider cannot read one: they are described
	leftOutTurns leftOut = "the messages that were never answered"
	leftOutTools leftOut = "tools" // the model calls them although it must not: their turns become text
	// With them the filter took no prompt: one that was answered may be what it objects to.
	leftOutEarlier leftOut = "the messages before it: delete or edit the one that the filter objects to, and the others are sent again"
)

// refusedMark stands for what is left out.
const refusedMark = "[What stood here is left out: a filter of the provider may have refused it.]"

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
	case e.Kind == llm.KindContentFilter && c.unanswered:
		out = leftOutTurns
	case e.Kind == llm.KindContentFilter && c.answered:
		out = leftOutEarlier
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

// withoutRefused returns the request without what was refused of the requests before it. Media are
// left out by the plan.
func (t *attempts) withoutRefused(req llm.Request, sent contextwindow.PromptSize, asked core.Message) (llm.Request, contextwindow.PromptSize) {
	if slices.Contains(t.leavesOut, leftOutTools) {
		req.Messages, req.Tools, req.ToolChoice = llm.ToolTurnsAsText(req.Messages), nil, core.ToolChoiceAuto
		sent = sent.AsText()
	}
	earlier, rest := splitAsked(req.Messages, asked)
	switch {
	case slices.Contains(t.leavesOut, leftOutEarlier):
		changes := slices.DeleteFunc(slices.Clone(earlier), func(m llm.Message) bool { return m.Role != core.RoleSystem }) // of tools
		req.Messages, sent.Rough = slices.Concat(changes, []llm.Message{{Role: core.RoleUser, Content: refusedMark}}, rest), true
	case slices.Contains(t.leavesOut, leftOutTurns):
		earlier, _ = withoutUnanswered(earlier)
		req.Messages, sent.Rough = slices.Concat(earlier, rest), true
	}
	return req, sent
}

// splitAsked returns the messages before the one that asks now, and those from it on.
func splitAsked(messages []llm.Message, asked core.Message) (earlier, rest []llm.Message) {
	last := max(len(messages)-1, 0)
	for last > 0 && !(messages[last].Role == core.RoleUser && strings.Contains(messages[last].Content, asked.Content)) {
		last--
	}
	return messages[:last], messages[last:]
}

// withoutUnanswered returns the messages with a mark in the place of each turn that does not end with an
// answer; found says that there is one.
func withoutUnanswered(messages []llm.Message) (out []llm.Message, found bool) {
	for len(messages) > 0 {
		end := 1
		for end < len(messages) && messages[end].Role != core.RoleUser {
			end++
		}
		turn := messages[:end]
		if final := turn[end-1]; turn[0].Role == core.RoleUser && (final.Role != core.RoleAssistant || len(final.ToolCalls) > 0) {
			found, turn = found || turn[0].Content != refusedMark, []llm.Message{{Role: core.RoleUser, Content: refusedMark}}
		}
		out, messages = append(out, turn...), messages[end:]
	}
	return out, found
}
