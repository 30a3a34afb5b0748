package summarize

import (
	"fmt"
	"slices"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/prompttext"
)

// NewSteps returns the strategy for a tool loop: a line for each call with the beginning
// of its result, and the ledger.
func NewSteps(count core.TextCounter) *Extract {
	return &Extract{count: count, name: StrategySteps, read: readSteps, sections: func() []section {
		return []section{{heading: "## Earlier Notes", share: 1, kind: runningText}, {heading: stepsHeading, share: 2}}
	}}
}

const stepsHeading = "## Steps"

const (
	argumentBytes = 160 // of a step's arguments
	resultBytes   = 200 // of the beginning of its result
)

// readSteps adds the messages. It skips the user's, which the prompt always contains.
func readSteps(n *notes, messages []core.Message) {
	steps := n.sectionOf(stepsHeading)
	for i, m := range messages {
		if m.Role != core.RoleAssistant {
			continue
		}
		if text := spokenText(m); text != "" {
			steps.addLine(quoteSource(m.Role, prompttext.Line(text, resultBytes)), messageRef(m))
		}
		end := i + 1
		for end < len(messages) && messages[end].Role == core.RoleTool {
			end++
		}
		for _, c := range m.ToolCalls {
			steps.addLine(stepLine(c, messages[i+1:end]), messageRef(m))
		}
	}
	if n.earlierSection().text == "" && len(steps.lines) == 0 {
		n.earlierSection().text = describeRange(messages)
	}
}

// stepLine describes a call and its result in one line.
func stepLine(c core.ToolCall, results []core.Message) string {
	line := fmt.Sprintf("%s(%s)", safeName(c.Name), prompttext.Line(c.Arguments, argumentBytes))
	i := slices.IndexFunc(results, func(m core.Message) bool { return m.ToolCallID == c.ID })
	if i < 0 {
		return line + " → no result"
	}
	m := results[i]
	if m.Status == core.MessageFailed {
		line += " → failed"
	}
	text := strings.TrimSpace(withoutOrders(core.Clip(spokenText(m), readBytes)))
	if text = prompttext.Line(text, resultBytes); text != "" {
		line += ` → "` + text + `"`
	}
	return line
}
