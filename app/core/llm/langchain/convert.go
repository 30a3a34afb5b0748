package langchain

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

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
		turns = llm.ToolTurnsAsText(turns)
	}
	if m.dialect.alternates {
		turns = llm.UsersJoined(turns)
	}
	for i, turn := range turns {
		switch turn.Role {
		case core.RoleUser:
			out = append(out, user(turn))
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

// user returns a user's message: its text, then its images as data URLs (O15).
func user(turn llm.Message) llms.MessageContent {
	out := llms.MessageContent{Role: llms.ChatMessageTypeHuman}
	if text := llm.PlainText(turn); text != llm.EmptyText || len(turn.Images) == 0 {
		out.Parts = append(out.Parts, llms.TextContent{Text: text})
	}
	for _, image := range turn.Images {
		out.Parts = append(out.Parts, llms.ImageURLPart("data:"+image.MediaType+";base64,"+base64.StdEncoding.EncodeToString(image.Data)))
	}
	return out
}

// assistant returns an assistant's message: its text and all its tool calls.
func (m *Model) assistant(turn llm.Message) llms.MessageContent {
	out := llms.MessageContent{Role: llms.ChatMessageTypeAI}
	if text := llm.PlainText(turn); text != llm.EmptyText || len(turn.ToolCalls) == 0 {
		out.Parts = append(out.Parts, llms.TextContent{Text: text})
	}
	for _, c := range turn.ToolCalls {
		out.Parts = append(out.Parts, llms.ToolCall{
			ID: m.callID(c.ID), Type: "function", FunctionCall: &llms.FunctionCall{Name: c.Name, Arguments: llm.Arguments(c)},
		})
	}
	return out
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
		return llm.HashID(id, 9)
	}
	if len(id) > maxCallID {
		return llm.HashID(id, maxCallID)
	}
	return id
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
