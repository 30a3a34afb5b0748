package eval

import (
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

// sameID stands for all ids; it has their length.
const sameID = "01890000-0000-7000-8000-000000000000"

// withSameIDs returns the text with all ids as sameID.
func withSameIDs(text string) string {
	var b strings.Builder
	from := 0
	for i := 0; ; {
		at := strings.IndexByte(text[i:], '-')
		if at < 0 {
			break
		}
		start := i + at - 8
		if start >= from && start+len(sameID) <= len(text) && isID(text[start:start+len(sameID)]) {
			b.WriteString(text[from:start])
			b.WriteString(sameID)
			from = start + len(sameID)
			i = from
			continue
		}
		i += at + 1
	}
	if from == 0 {
		return text
	}
	b.WriteString(text[from:])
	return b.String()
}

// isID reports whether the text is an id as core.NewID makes them.
func isID(s string) bool {
	for i, c := range []byte(s) {
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		case 14:
			if c != '7' {
				return false
			}
		default:
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				return false
			}
		}
	}
	return true
}
