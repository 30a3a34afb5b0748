package openai

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// chatRequest is the body of a request for an answer. The order of the members is part of
// what providers cache.
type chatRequest struct {
	Model               string          `json:"model"`
	Messages            []message       `json:"messages"`
	Tools               []tool          `json:"tools,omitempty"`
	ToolChoice          any             `json:"tool_choice,omitempty"` // a word or a namedTool
	ParallelToolCalls   *bool           `json:"parallel_tool_calls,omitempty"`
	MaxTokens           int             `json:"max_tokens,omitempty"`
	MaxCompletionTokens int             `json:"max_completion_tokens,omitempty"`
	Stream              bool            `json:"stream"`
	StreamOptions       *streamOptions  `json:"stream_options,omitempty"`
	Temperature         *float64        `json:"temperature,omitempty"`
	TopP                *float64        `json:"top_p,omitempty"`
	Stop                []string        `json:"stop,omitempty"`
	Seed                *int            `json:"seed,omitempty"`
	RandomSeed          *int            `json:"random_seed,omitempty"` // Mistral's name of the seed
	ReasoningEffort     string          `json:"reasoning_effort,omitempty"`
	ResponseFormat      *responseFormat `json:"response_format,omitempty"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type message struct {
	Role       string       `json:"role"`
	Content    any          `json:"content"` // a string or a []contentPart
	ToolCalls  []calledTool `json:"tool_calls,omitempty"`
	ToolCallID string       `json:"tool_call_id,omitempty"`
}

// contentPart is a text, an image or a PDF.
type contentPart struct {
	Type     string    `json:"type"`
	Text     string    `json:"text,omitempty"`
	ImageURL *imageURL `json:"image_url,omitempty"`
	File     *fileData `json:"file,omitempty"`
}

type imageURL struct {
	URL string `json:"url"`
}

type fileData struct {
	Filename string `json:"filename"`
	FileData string `json:"file_data"`
}

type calledTool struct {
	ID           string        `json:"id"`
	Type         string        `json:"type"`
	Function     calledFunc    `json:"function"`
	ExtraContent *extraContent `json:"extra_content,omitempty"`
}

type calledFunc struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// extraContent holds the signature of a tool call for Gemini.
type extraContent struct {
	Google struct {
		ThoughtSignature string `json:"thought_signature"`
	} `json:"google"`
}

type tool struct {
	Type     string   `json:"type"`
	Function toolSpec `json:"function"`
}

type toolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      *bool           `json:"strict,omitempty"`
}

// namedTool is the tool choice of one tool.
type namedTool struct {
	Type     string   `json:"type"`
	Function toolName `json:"function"`
}

type toolName struct {
	Name string `json:"name"`
}

type responseFormat struct {
	Type       core.FormatType `json:"type"`
	JSONSchema *jsonSchema     `json:"json_schema,omitempty"`
}

type jsonSchema struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
	Strict *bool           `json:"strict,omitempty"`
}

// requestBody returns the body of the request. It depends on the request alone, message by
// message, so that the same messages give the same bytes.
func (m *Model) requestBody(req llm.Request) ([]byte, error) {
	messages := make([]message, 0, 1+len(req.Messages))
	if system := req.SystemText(); system != "" {
		messages = append(messages, message{Role: "system", Content: system})
	}
	turns := req.Messages
	if m.sendsToolsAsText(req) {
		turns = llm.ToolTurnsAsText(turns)
	}
	if m.dialect.alternates {
		turns = llm.Alternating(turns)
	}
	for i, turn := range turns {
		switch turn.Role {
		case core.RoleUser:
			messages = append(messages, userMessage(turn))
		case core.RoleAssistant:
			messages = append(messages, m.assistantMessage(turn))
		case core.RoleTool:
			messages = append(messages, message{Role: "tool", Content: turn.Content, ToolCallID: m.callID(turn.ToolCallID)})
		case core.RoleSystem: // kept in the log, never sent
		default:
			return nil, fmt.Errorf("message %d has the role %q", i, turn.Role)
		}
	}
	body := chatRequest{
		Model: m.options.Model, Messages: messages, Tools: m.toolList(req), Stream: true,
		TopP: req.TopP, Stop: req.Stop, ReasoningEffort: req.ReasoningEffort,
	}
	if req.ResponseFormat != nil {
		body.ResponseFormat = toResponseFormat(req.ResponseFormat)
	}
	if len(body.Tools) > 0 {
		body.ToolChoice, body.ParallelToolCalls = toToolChoice(req.ToolChoice), req.ParallelToolCalls
	}
	if m.dialect.legacyMaxTokens {
		body.MaxTokens = max(req.MaxOutputTokens, 0)
	} else {
		body.MaxCompletionTokens = max(req.MaxOutputTokens, 0)
	}
	if !m.dialect.noStreamOptions {
		body.StreamOptions = &streamOptions{IncludeUsage: true}
	}
	// Summaries and titles ask every model for a temperature; some models refuse one.
	if !HasFixedSampling(m.options.Model) {
		body.Temperature = req.Temperature
	}
	if m.dialect.randomSeed {
		body.RandomSeed = req.Seed
	} else {
		body.Seed = req.Seed
	}
	return json.Marshal(body)
}

// userMessage returns a user's message: its text, then its images and PDFs as data URLs.
func userMessage(turn llm.Message) message {
	text := llm.PlainText(turn)
	if len(turn.Media) == 0 {
		return message{Role: "user", Content: text}
	}
	var parts []contentPart
	if text != llm.EmptyText {
		parts = append(parts, contentPart{Type: "text", Text: text})
	}
	for _, media := range turn.Media {
		url := ";base64," + base64.StdEncoding.EncodeToString(media.Data)
		if media.Type == core.PartFile { // only PDFs go with messages
			parts = append(parts, contentPart{Type: "file", File: &fileData{Filename: media.Name, FileData: "data:application/pdf" + url}})
			continue
		}
		parts = append(parts, contentPart{Type: "image_url", ImageURL: &imageURL{URL: "data:" + media.MediaType + url}})
	}
	return message{Role: "user", Content: parts}
}

// assistantMessage returns an assistant's message: its text and all its tool calls.
func (m *Model) assistantMessage(turn llm.Message) message {
	text := llm.PlainText(turn)
	if text == llm.EmptyText && len(turn.ToolCalls) > 0 {
		text = ""
	}
	out := message{Role: "assistant", Content: text}
	for _, c := range turn.ToolCalls {
		out.ToolCalls = append(out.ToolCalls, calledTool{
			ID: m.callID(c.ID), Type: "function", Function: calledFunc{Name: c.Name, Arguments: llm.Arguments(c)},
		})
	}
	if m.dialect.signatures {
		// Gemini 3 and later refuse a turn whose first call has no signature.
		model := strings.TrimPrefix(strings.ToLower(m.options.Model), "models/")
		isSigned := slices.ContainsFunc(turn.ToolCalls, func(c core.ToolCall) bool { return c.Signature != "" })
		for i, c := range turn.ToolCalls {
			signature := c.Signature
			if i == 0 && !isSigned && !strings.HasPrefix(model, "gemini-1") && !strings.HasPrefix(model, "gemini-2") {
				signature = foreignSignature
			}
			if signature != "" {
				out.ToolCalls[i].ExtraContent = &extraContent{}
				out.ToolCalls[i].ExtraContent.Google.ThoughtSignature = signature
			}
		}
	}
	return out
}

// foreignSignature is what Google documents for calls that its model did not make.
const foreignSignature = "skip_thought_signature_validator"

// orNull is a type that may be null as JSON Schema has it: Gemini's schemas have one type.
var orNull = regexp.MustCompile(`"type":\["(?:null","(\w+)|(\w+)","null)"\]`)

func (m *Model) toolList(req llm.Request) []tool {
	if m.sendsToolsAsText(req) {
		return nil
	}
	tools := make([]tool, 0, len(req.Tools))
	for _, t := range req.Tools {
		parameters := t.Schema()
		if m.options.Provider == llm.ProviderGemini && bytes.Contains(parameters, []byte(`"null"`)) {
			parameters = orNull.ReplaceAll(parameters, []byte(`"type":"$1$2","nullable":true`))
		}
		tools = append(tools, tool{Type: "function", Function: toolSpec{Name: t.Name, Description: t.Description, Parameters: parameters, Strict: t.Strict}})
	}
	return tools
}

// toToolChoice returns the choice as OpenAI writes it; nil = the model decides.
func toToolChoice(c core.ToolChoice) any {
	switch {
	case c == core.ToolChoiceAuto:
		return nil
	case c.Tool() != "":
		return namedTool{Type: "function", Function: toolName{c.Tool()}}
	}
	return c
}

// sendsToolsAsText reports whether the request forbids tools to a model without a tool
// choice "none": it gets no tools, and tool turns as text.
func (m *Model) sendsToolsAsText(req llm.Request) bool {
	return m.options.Info.NoToolChoice && req.ToolChoice == core.ToolChoiceNone
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
