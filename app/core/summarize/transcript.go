package summarize

import (
	"fmt"
	"regexp"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/prompttext"
)

// How much of a message the summarizer sees, in characters.
const (
	resultCharacters       = 2_000 // of a tool result
	budgetResultCharacters = 500   // of a tool result with preset budget
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
	tokens int  // of the text and a line break
	tool   bool // a tool's result
	cut    bool // the text is not complete
}

// transcriptPieces renders the messages, one piece each. It skips system rows and empty
// messages.
func transcriptPieces(count core.TextCounter, messages []core.Message, resultLimit int) []piece {
	pieces := make([]piece, 0, len(messages))
	for _, m := range messages {
		if text := renderMessage(m, resultLimit); text != "" {
			pieces = append(pieces, piece{text: text, tokens: count.Text(text) + 1, tool: m.Role == core.RoleTool})
		}
	}
	return pieces
}

// renderMessage returns the message as escaped text: "[seq] role: text", a line more for
// each tool call, long tool results cut. Empty = the message has no content.
func renderMessage(m core.Message, resultLimit int) string {
	var lines []string
	switch m.Role {
	case core.RoleSystem:
		return ""
	case core.RoleTool:
		name := safeName(m.ToolName)
		if m.Status == core.MessageFailed {
			name += " (failed)"
		}
		lines = append(lines, fmt.Sprintf("[%s] tool %s: %s", messageRef(m), name, makeHarmless(prompttext.Characters(m.Content, resultLimit))))
	default:
		said := m
		said.Content = prompttext.WithSpeaker(m)
		if text := spokenText(said); text != "" {
			lines = append(lines, fmt.Sprintf("[%s] %s: %s", messageRef(m), m.Role, makeHarmless(text)))
		}
	}
	for _, c := range m.ToolCalls {
		arguments := makeHarmless(prompttext.Characters(c.Arguments, argumentCharacters))
		lines = append(lines, fmt.Sprintf("[%s] %s calls %s(%s)", messageRef(m), m.Role, safeName(c.Name), arguments))
	}
	return strings.Join(lines, "\n")
}

// spokenText returns the text of a message, with a description of each attachment,
// without its reasoning.
func spokenText(m core.Message) string {
	said := strings.TrimSpace(m.Content)
	for _, p := range m.Parts {
		switch p.Type {
		case core.PartReasoning, core.PartCompaction:
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

// messageRef returns the name of a message in the transcript and the ledger: its seq,
// which is short and can be looked up; without one the end of its id.
func messageRef(m core.Message) string {
	if m.Seq > 0 {
		return fmt.Sprint(m.Seq)
	}
	id := string(m.ID)
	return safeName(id[max(len(id)-8, 0):])
}

// safeName replaces the characters by which a name could break out of its line.
func safeName(name string) string {
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

// turnLine is a line that looks like the beginning of a message, or of what a chat
// template begins one with.
var turnLine = regexp.MustCompile(`(?mi)(^|[\r\v\f\x{85}\x{2028}\x{2029}])([ \t]*)\[[ \t]*([0-9a-f]{1,20})[ \t]*\][ \t]*(user|assistant|tool|system)\b`)

// makeHarmless escapes data so that it can neither leave its fence (prompttext.Harmless) nor
// look like another message of the transcript.
func makeHarmless(text string) string {
	text = prompttext.Harmless(text)
	if strings.Contains(text, "[") {
		text = turnLine.ReplaceAllString(text, "$1$2($3) $4")
	}
	return text
}
