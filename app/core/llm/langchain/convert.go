package langchain

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// emptyText stands for a message without anything in it, which several providers
// refuse.
const emptyText = "[empty]"

// messages returns the prompt in langchaingo's types: the system blocks as one
// message, then one message for each of the request. It is a function of the
// request alone, message by message, so that the same messages give the same
// bytes (CONTEXT § 3, invariant 7).
func (m *Model) messages(req llm.Request) ([]llms.MessageContent, error) {
	var out []llms.MessageContent
	if system := strings.Join(nonEmpty(req.System), "\n\n"); system != "" {
		out = append(out, llms.TextParts(llms.ChatMessageTypeSystem, system))
	}
	turns := req.Messages
	if m.asText(req) {
		turns = toolTurnsAsText(turns)
	}
	for i, turn := range turns {
		switch turn.Role {
		case core.RoleUser:
			out = append(out, llms.TextParts(llms.ChatMessageTypeHuman, textOf(turn)))
		case core.RoleAssistant:
			out = append(out, m.assistant(turn))
		case core.RoleTool:
			out = append(out, llms.MessageContent{Role: llms.ChatMessageTypeTool, Parts: []llms.ContentPart{
				llms.ToolCallResponse{ToolCallID: m.callID(turn.ToolCallID), Name: turn.ToolName, Content: turn.Content},
			}})
		case core.RoleSystem: // kept in the log, never sent (W14)
		default:
			return nil, m.peer.Invalid(fmt.Errorf("message %d has the role %q", i, turn.Role))
		}
	}
	return out, nil
}

// assistant returns an assistant's message: its text and all its tool calls.
func (m *Model) assistant(turn llm.Message) llms.MessageContent {
	out := llms.MessageContent{Role: llms.ChatMessageTypeAI}
	if text := textOf(turn); text != emptyText || len(turn.ToolCalls) == 0 {
		out.Parts = append(out.Parts, llms.TextContent{Text: text})
	}
	for _, c := range turn.ToolCalls {
		out.Parts = append(out.Parts, llms.ToolCall{
			ID: m.callID(c.ID), Type: "function", FunctionCall: &llms.FunctionCall{Name: c.Name, Arguments: arguments(c)},
		})
	}
	return out
}

// arguments are sent as the model wrote them; only nothing at all becomes an
// empty object, which every provider takes.
func arguments(c core.ToolCall) string {
	if c.Arguments == "" {
		return "{}"
	}
	return c.Arguments
}

// textOf returns the message as text. Images and files are named; their content
// is not sent. Reasoning is not sent back.
func textOf(turn llm.Message) string {
	pieces := nonEmpty([]string{turn.Content})
	for _, p := range turn.Parts {
		switch p.Type {
		case "text":
			pieces = append(pieces, nonEmpty([]string{p.Text})...)
		case "image", "file":
			pieces = append(pieces, describe(p))
		}
	}
	if len(pieces) == 0 {
		return emptyText
	}
	return strings.Join(pieces, "\n")
}

func describe(p core.Part) string {
	name := p.Name
	if name == "" {
		name = p.MediaType
	}
	if name == "" {
		return "[" + p.Type + "]"
	}
	return "[" + p.Type + ": " + name + "]"
}

// toolTurnsAsText rewrites tool calls and their results as text, for a provider
// that cannot be told to leave tools alone. The results of one turn become one
// message of the user, joined with a user's message that follows, so that user
// and assistant go on alternating.
func toolTurnsAsText(turns []llm.Message) []llm.Message {
	out := make([]llm.Message, 0, len(turns))
	open := false // the last message of out ends with a result
	for _, turn := range turns {
		result := turn.Role == core.RoleTool
		switch turn.Role {
		case core.RoleTool:
			turn = llm.Message{Role: core.RoleUser, Content: fmt.Sprintf("[result of %s]\n%s", turn.ToolName, turn.Content)}
		case core.RoleAssistant:
			turn = callsAsText(turn)
		}
		if open && turn.Role == core.RoleUser {
			out[len(out)-1].Content += "\n\n" + textOf(turn)
		} else {
			out = append(out, turn)
		}
		open = result
	}
	return out
}

func callsAsText(turn llm.Message) llm.Message {
	pieces := nonEmpty([]string{turn.Content})
	for _, c := range turn.ToolCalls {
		pieces = append(pieces, fmt.Sprintf("[called %s with %s]", c.Name, arguments(c)))
	}
	turn.Content, turn.ToolCalls = strings.Join(pieces, "\n"), nil
	return turn
}

// shortCallID is what Mistral takes as the id of a tool call.
var shortCallID = regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)

// maxCallID is the longest id that OpenAI takes, in bytes.
const maxCallID = 40

// callID returns the id of a tool call as the provider takes it: the same for the
// call and its result, and unchanged where possible. A session that came from
// another provider has ids of that one's form.
func (m *Model) callID(id string) string {
	if m.dialect.shortCallIDs && !shortCallID.MatchString(id) {
		return hash(id, 9)
	}
	if len(id) > maxCallID {
		return hash(id, maxCallID)
	}
	return id
}

// hash returns n ≤ 40 letters and digits that stand for the id.
func hash(id string, n int) string {
	sum := sha256.Sum256([]byte(id))
	text := base64.StdEncoding.EncodeToString(sum[:])
	return strings.NewReplacer("+", "p", "/", "s", "=", "e").Replace(text)[:n]
}

func nonEmpty(texts []string) []string {
	out := make([]string, 0, len(texts))
	for _, t := range texts {
		if t != "" {
			out = append(out, t)
		}
	}
	return out
}
