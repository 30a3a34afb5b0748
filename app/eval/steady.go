package eval

import (
	"regexp"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// Steady returns a counter to which all ids are alike: they are made at random, so
// that the count of a text that holds one would differ from replay to replay.
func Steady(count llm.TokenCounter) llm.TokenCounter { return steady{count} }

type steady struct{ llm.TokenCounter }

// Text counts the text with every id as the same one.
func (s steady) Text(text string) int { return s.TokenCounter.Text(withSameIDs(text)) }

// Message counts the message with every id as the same one.
func (s steady) Message(m core.Message) int {
	m.Content = withSameIDs(m.Content)
	for i, c := range m.ToolCalls {
		if args := withSameIDs(c.Arguments); args != c.Arguments {
			m.ToolCalls = append([]core.ToolCall(nil), m.ToolCalls...)
			m.ToolCalls[i].Arguments = args
		}
	}
	return s.TokenCounter.Message(m)
}

// anyID matches an id as core.NewID makes them.
var anyID = regexp.MustCompile(`[0-9a-z]{8}-[0-9a-z]{4}-7[0-9a-z]{3}-[0-9a-z]{4}-[0-9a-z]{12}`)

// sameID stands for all ids; it has their length.
const sameID = "01890000-0000-7000-8000-000000000000"

// withSameIDs returns the text with all ids as sameID.
func withSameIDs(text string) string {
	if !strings.Contains(text, "-7") { // the rule, and much quicker
		return text
	}
	return anyID.ReplaceAllLiteralString(text, sameID)
}
