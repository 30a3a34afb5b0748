package summarize

import (
	"fmt"
	"regexp"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/cut"
)

// How much of a message the summarizer sees, in characters.
const (
	resultCharacters       = 2_000 // of a tool result (CONTEXT § 6)
	budgetResultCharacters = 500   // of a tool result with preset budget (B9)
	argumentCharacters     = 500   // of a tool call's arguments
)

// resultLimit returns how many characters of a tool result the preset shows.
func resultLimit(preset string) int {
	if preset == PresetBudget {
		return budgetResultCharacters
	}
	return resultCharacters
}

// piece is one message as the summarizer sees it.
type piece struct {
	text   string
	tokens int
}

// transcript renders the messages, one piece each. System rows and messages
// that say nothing are passed over.
func transcript(count counter, messages []core.Message, resultLimit int) []piece {
	pieces := make([]piece, 0, len(messages))
	for _, m := range messages {
		if text := render(m, resultLimit); text != "" {
			pieces = append(pieces, piece{text: text, tokens: count.Text(text) + 1}) // and a line break
		}
	}
	return pieces
}

// render returns the message as text, made harmless: "[seq] role: text", a line
// more for each tool call, long tool results cut. Empty = nothing to say.
func render(m core.Message, resultLimit int) string {
	var lines []string
	switch m.Role {
	case core.RoleSystem:
		return ""
	case core.RoleTool:
		text := harmless(cut.Characters(m.Content, resultLimit))
		lines = append(lines, fmt.Sprintf("[%s] tool %s%s: %s", ref(m), word(m.ToolName), failed(m), text))
	default:
		if text := spoken(m); text != "" {
			lines = append(lines, fmt.Sprintf("[%s] %s: %s", ref(m), m.Role, harmless(text)))
		}
	}
	for _, c := range m.ToolCalls {
		arguments := harmless(cut.Characters(c.Arguments, argumentCharacters))
		lines = append(lines, fmt.Sprintf("[%s] %s calls %s(%s)", ref(m), m.Role, word(c.Name), arguments))
	}
	return strings.Join(lines, "\n")
}

// spoken is what a message says, with a word for each attachment. Reasoning is
// not said.
func spoken(m core.Message) string {
	said := strings.TrimSpace(m.Content)
	for _, p := range m.Parts {
		switch p.Type {
		case "reasoning":
		case "text":
			if m.Content == "" {
				said += "\n" + p.Text
			}
		default:
			said += " [" + p.Describe() + "]"
		}
	}
	return strings.TrimSpace(said)
}

func failed(m core.Message) string {
	if m.Status == core.MessageFailed {
		return " (failed)"
	}
	return ""
}

// ref is how the transcript and the ledger name a message: by its seq, which is
// short and can be looked up; without one by the end of its id.
func ref(m core.Message) string {
	if m.Seq > 0 {
		return fmt.Sprint(m.Seq)
	}
	id := string(m.ID)
	return word(id[max(len(id)-8, 0):])
}

// word keeps a name to what a name may be, so that it cannot break out of its line.
func word(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < ' ' || strings.ContainsRune("<>[]():", r) {
			return '_'
		}
		return r
	}, core.Clip(strings.ToValidUTF8(name, "_"), 64))
	if name == "" {
		return "?"
	}
	return name
}

var (
	// fence is one of our own tags, however it is written.
	fence = regexp.MustCompile(`(?i)[<＜]([\s\p{Cf}]*[/／]?[\s\p{Cf}]*(?:transcript|summary)\b)`)
	// turnLine is a line that looks like the beginning of a message, or of what a chat
	// template begins one with.
	turnLine = regexp.MustCompile(`(?mi)(^|[\r\v\f\x{85}\x{2028}\x{2029}])([ \t]*)\[[ \t]*([0-9a-f]{1,20})[ \t]*\][ \t]*(user|assistant|tool|system)\b`)
)

// harmless makes data unable to leave its fence: our own tags lose their bracket,
// and so does a line that looks like the beginning of another message. Special tokens
// of models are text like any other and stay.
func harmless(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if strings.ContainsAny(text, "<＜") {
		text = fence.ReplaceAllString(text, "‹$1")
	}
	if strings.Contains(text, "[") {
		text = turnLine.ReplaceAllString(text, "$1$2($3) $4")
	}
	return text
}
