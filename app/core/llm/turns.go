package llm

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"bobbin/app/core"
)

// EmptyText stands for an empty message, which several providers refuse, and NoAnswer for an answer
// that a run with results of tools did not come to.
const (
	EmptyText = "[empty]"
	NoAnswer  = "[no answer]"
)

// Arguments returns a call's arguments as they are sent: as the model wrote them,
// if that is a JSON object. Some providers refuse every later prompt otherwise:
// nothing becomes an empty object, anything else is put into one.
func Arguments(c core.ToolCall) string {
	text := strings.TrimSpace(c.Arguments)
	switch {
	case text == "":
		return "{}"
	case strings.HasPrefix(text, "{") && json.Valid([]byte(text)):
		return c.Arguments
	}
	wrapped, _ := json.Marshal(map[string]string{"unreadable_arguments": c.Arguments}) // texts have no error
	return string(wrapped)
}

// PlainText returns the message as text. Images and files are named; their content
// is not sent. Reasoning is not sent back.
func PlainText(turn Message) string {
	pieces := []string{turn.Content}
	for _, p := range turn.Parts {
		switch p.Type {
		case "text":
			pieces = append(pieces, p.Text)
		case "image", "file":
			pieces = append(pieces, "["+p.Describe()+"]")
		}
	}
	return cmp.Or(core.Join("\n", pieces...), EmptyText)
}

// ToolTurnsAsText rewrites tool calls and their results as text, for a provider
// without a tool choice "none". The results of one turn become one
// message of the user, joined with a user's message that follows, so that user
// and assistant keep alternating.
func ToolTurnsAsText(turns []Message) []Message {
	out := make([]Message, 0, len(turns))
	open := false // the last message of out ends with a result
	for _, turn := range turns {
		result := turn.Role == core.RoleTool
		switch turn.Role {
		case core.RoleTool:
			turn = Message{Role: core.RoleUser, Content: fmt.Sprintf("[result of %s]\n%s", turn.ToolName, turn.Content)}
		case core.RoleAssistant:
			pieces := []string{turn.Content}
			for _, c := range turn.ToolCalls {
				pieces = append(pieces, fmt.Sprintf("[called %s with %s]", c.Name, Arguments(c)))
			}
			turn.Content, turn.ToolCalls = core.Join("\n", pieces...), nil
		}
		if open && turn.Role == core.RoleUser {
			out[len(out)-1].Content += "\n\n" + PlainText(turn)
			out[len(out)-1].Media = append(out[len(out)-1].Media, turn.Media...)
		} else {
			out = append(out, turn)
		}
		open = result
	}
	return out
}

// Alternating returns the messages for a provider that requires user and assistant to alternate, the
// user first. Consecutive messages of one role are joined, such as a question and the notes on the
// work so far; between the results of a run that failed and the next question comes NoAnswer. System
// messages are left out.
func Alternating(turns []Message) []Message {
	turns = UserFirst(turns)
	if isSystem := func(m Message) bool { return m.Role == core.RoleSystem }; slices.ContainsFunc(turns, isSystem) {
		turns = slices.DeleteFunc(slices.Clone(turns), isSystem)
	}
	out := make([]Message, 0, len(turns))
	for i, end := 0, 0; i < len(turns); i = end {
		turn := turns[i]
		for end = i + 1; end < len(turns) && turns[end].Role == turn.Role && turn.Role != core.RoleTool && len(turns[end-1].ToolCalls) == 0; end++ {
		}
		if i > 0 && turn.Role == core.RoleUser && turns[i-1].Role == core.RoleTool {
			out = append(out, Message{Role: core.RoleAssistant, Content: NoAnswer})
		}
		if end > i+1 {
			turn = joinMessages(turns[i:end])
		}
		out = append(out, turn)
	}
	return out
}

// joinMessages returns messages of one role as one.
func joinMessages(turns []Message) Message {
	out := Message{Role: turns[0].Role, ToolCalls: turns[len(turns)-1].ToolCalls}
	var texts []string
	for _, turn := range turns {
		if text := PlainText(turn); text != EmptyText {
			texts = append(texts, text)
		}
		out.Media = append(out.Media, turn.Media...)
	}
	out.Content = strings.Join(texts, "\n\n")
	return out
}

// UserFirst returns the messages with an empty one of the user before an assistant's that would be
// the first: a conversation may begin with a greeting.
func UserFirst(turns []Message) []Message {
	first := slices.IndexFunc(turns, func(m Message) bool { return m.Role != core.RoleSystem })
	if first < 0 || turns[first].Role != core.RoleAssistant {
		return turns
	}
	return slices.Insert(slices.Clone(turns), first, Message{Role: core.RoleUser, Content: EmptyText})
}

// NewCallID returns an id for a tool call that came without one. It is short enough for
// every provider.
func NewCallID() string {
	return "call_" + strings.ReplaceAll(string(core.NewID[core.MessageID]()), "-", "")
}

// HashID returns n ≤ 40 letters and digits that stand for the id.
func HashID(id string, n int) string {
	sum := sha256.Sum256([]byte(id))
	text := base64.StdEncoding.EncodeToString(sum[:])
	return strings.NewReplacer("+", "p", "/", "s", "=", "e").Replace(text)[:n]
}
