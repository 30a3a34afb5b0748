package langchain

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// toMessages returns the prompt in langchaingo's types. User and assistant alternate,
// which several providers require.
func (m *Model) toMessages(req llm.Request) ([]llms.MessageContent, error) {
	turns := req.Messages
	if !m.keepsToolTurns(req) {
		turns = llm.ToolTurnsAsText(turns)
	}
	turns = llm.Alternating(turns)
	system := req.SystemText()
	if m.traits.onePrompt {
		return []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, onePrompt(system, turns))}, nil
	}
	var out []llms.MessageContent
	if system != "" {
		out = append(out, llms.TextParts(llms.ChatMessageTypeSystem, system))
	}
	for i, turn := range turns {
		switch turn.Role {
		case core.RoleUser:
			out = append(out, userMessage(turn))
		case core.RoleAssistant:
			out = append(out, assistantMessage(turn))
		case core.RoleTool:
			out = append(out, llms.MessageContent{Role: llms.ChatMessageTypeTool, Parts: []llms.ContentPart{
				llms.ToolCallResponse{ToolCallID: turn.ToolCallID, Name: turn.ToolName, Content: turn.Content},
			}})
		case core.RoleSystem: // kept in the log, never sent
		default:
			return nil, m.peer.Invalid(fmt.Errorf("message %d has the role %q", i, turn.Role))
		}
	}
	return out, nil
}

// onePrompt returns the conversation as a text that ends where the model continues.
func onePrompt(system string, turns []llm.Message) string {
	if system == "" && len(turns) == 1 {
		return llm.PlainText(turns[0])
	}
	var text strings.Builder
	if system != "" {
		text.WriteString(system + "\n\n")
	}
	for _, turn := range turns {
		switch turn.Role {
		case core.RoleUser:
			text.WriteString("User: " + llm.PlainText(turn) + "\n\n")
		case core.RoleAssistant:
			text.WriteString("Assistant: " + llm.PlainText(turn) + "\n\n")
		}
	}
	return text.String() + "Assistant:"
}

// userMessage returns a message of the user: its text, then its images.
func userMessage(turn llm.Message) llms.MessageContent {
	out := llms.MessageContent{Role: llms.ChatMessageTypeHuman}
	if text := llm.PlainText(turn); text != llm.EmptyText || len(turn.Media) == 0 {
		out.Parts = append(out.Parts, llms.TextContent{Text: text})
	}
	for _, media := range turn.Media {
		out.Parts = append(out.Parts, llms.BinaryPart(media.MediaType, media.Data))
	}
	return out
}

// assistantMessage returns a message of the assistant: its text and its tool calls.
func assistantMessage(turn llm.Message) llms.MessageContent {
	out := llms.MessageContent{Role: llms.ChatMessageTypeAI}
	if text := llm.PlainText(turn); text != llm.EmptyText || len(turn.ToolCalls) == 0 {
		out.Parts = append(out.Parts, llms.TextContent{Text: text})
	}
	for _, c := range turn.ToolCalls {
		out.Parts = append(out.Parts, llms.ToolCall{
			ID: c.ID, Type: "function", FunctionCall: &llms.FunctionCall{Name: c.Name, Arguments: llm.Arguments(c)},
		})
	}
	return out
}

// keepsToolTurns reports whether tool calls and their results are sent as such; otherwise
// they are sent as text.
func (m *Model) keepsToolTurns(req llm.Request) bool {
	return !slices.Contains(m.info.Lacks, llm.Tools) && (!m.info.NoToolChoice || req.ToolChoice != core.ToolChoiceNone)
}

// sendsTools reports whether the request has a list of tools.
func (m *Model) sendsTools(req llm.Request) bool { return len(req.Tools) > 0 && m.keepsToolTurns(req) }

// callOptions returns the parameters of the request.
func (m *Model) callOptions(req llm.Request) []llms.CallOption {
	var options []llms.CallOption
	switch {
	case req.Temperature != nil:
		options = append(options, llms.WithTemperature(*req.Temperature))
	case m.traits.temperature != 0:
		options = append(options, llms.WithTemperature(m.traits.temperature))
	}
	switch {
	case req.Seed != nil:
		options = append(options, llms.WithSeed(*req.Seed))
	case m.traits.seeded:
		options = append(options, llms.WithSeed(newSeed()))
	}
	if req.MaxOutputTokens > 0 {
		options = append(options, llms.WithMaxTokens(req.MaxOutputTokens))
	}
	if req.TopP != nil {
		options = append(options, llms.WithTopP(*req.TopP))
	}
	if len(req.Stop) > 0 {
		options = append(options, llms.WithStopWords(req.Stop))
	}
	if req.ResponseFormat != nil && req.ResponseFormat.Type == core.FormatJSONObject {
		options = append(options, llms.WithJSONMode())
	}
	if m.sendsTools(req) {
		options = append(options, llms.WithTools(toolList(req.Tools)))
		if choice := toToolChoice(req.ToolChoice); choice != nil && !m.info.NoToolChoice {
			options = append(options, llms.WithToolChoice(choice))
		}
	}
	return options
}

// toToolChoice returns the choice in langchaingo's types; nil = the model decides.
func toToolChoice(c core.ToolChoice) any {
	switch tool := c.Tool(); {
	case c == core.ToolChoiceAuto:
		return nil
	case tool != "":
		return llms.ToolChoice{Type: "function", Function: &llms.FunctionReference{Name: tool}}
	}
	return string(c)
}

func toolList(tools []llm.ToolSpec) []llms.Tool {
	out := make([]llms.Tool, 0, len(tools))
	for _, t := range tools {
		parameters := t.Parameters
		if len(parameters) == 0 {
			parameters = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		out = append(out, llms.Tool{Type: "function", Function: &llms.FunctionDefinition{
			Name: t.Name, Description: t.Description, Parameters: parameters, Strict: t.Strict != nil && *t.Strict,
		}})
	}
	return out
}
