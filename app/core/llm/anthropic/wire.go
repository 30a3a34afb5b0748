package anthropic

import (
	"encoding/json"
	"slices"
)

// request is the body of a request. The order of the members is part of what the API keeps in its cache.
type request struct {
	MaxTokens     int           `json:"max_tokens"`
	Messages      []message     `json:"-"` // after MaxTokens (encode)
	Model         string        `json:"model,omitempty"`
	Temperature   *float64      `json:"temperature,omitempty"`
	TopP          *float64      `json:"top_p,omitempty"`
	OutputConfig  *outputConfig `json:"output_config,omitempty"`
	StopSequences []string      `json:"stop_sequences,omitempty"`
	System        []block       `json:"system,omitempty"`
	Thinking      *thinking     `json:"thinking,omitempty"`
	ToolChoice    *toolChoice   `json:"tool_choice,omitempty"`
	Tools         []tool        `json:"tools,omitempty"`
	Stream        bool          `json:"stream"`
	Compaction    *typed        `json:"compaction,omitempty"`
	Version       string        `json:"anthropic_version,omitempty"` // of a cloud
}

type outputConfig struct {
	Format outputFormat `json:"format"`
}

type outputFormat struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema"`
}

type thinking struct {
	BudgetTokens int           `json:"budget_tokens,omitempty"`
	Display      string        `json:"display,omitempty"`
	Type         string        `json:"type"`
	Binding      *blockBinding `json:"block_binding,omitempty"`
}

type blockBinding struct {
	OnMismatch string `json:"prefix_mismatch_behavior"`
}

type toolChoice struct {
	Name   string `json:"name,omitempty"`
	Single bool   `json:"disable_parallel_tool_use,omitempty"`
	Type   string `json:"type"`
}

type tool struct {
	InputSchema  json.RawMessage `json:"input_schema"`
	Name         string          `json:"name"`
	Description  string          `json:"description,omitempty"`
	Strict       *bool           `json:"strict,omitempty"`
	CacheControl *typed          `json:"cache_control,omitempty"`
}

// typed is a member that has nothing but a type.
type typed struct {
	Type string `json:"type"`
}

type message struct {
	role    string
	content []block
}

// block is a block of content; its type says which members it has.
type block struct {
	id        string // of a tool call, which begins with it and its arguments (encode)
	arguments string
	Name      string `json:"name,omitempty"`
	ToolUseID string `json:"tool_use_id,omitempty"`
	opaque
	Thinking     *string      `json:"thinking,omitempty"`
	Data         string       `json:"data,omitempty"`
	Source       *source      `json:"source,omitempty"`
	Title        string       `json:"title,omitempty"`
	Text         string       `json:"text,omitempty"`
	Tool         *changedTool `json:"tool,omitempty"`
	CacheControl *typed       `json:"cache_control,omitempty"`
	Content      any          `json:"content,omitempty"` // a text or blocks
	Type         string       `json:"type"`
}

// opaque is what the API wants back as it came.
type opaque struct {
	Signature        string          `json:"signature,omitempty"`
	EncryptedContent string          `json:"encrypted_content,omitempty"`
	ToolChanges      json.RawMessage `json:"tool_changes,omitempty"`
}

// source is the content of an image or a document.
type source struct {
	Data      string `json:"data"` // base64
	MediaType string `json:"media_type"`
	Type      string `json:"type"`
}

// changedTool is a tool that is added by its definition, or removed by its name.
type changedTool struct {
	Type       string `json:"type"`
	Name       string `json:"name,omitempty"`
	Definition *tool  `json:"definition,omitempty"`
}

// encode returns the body. The arguments of calls are sent as the model wrote them, which json.Marshal
// would compact: the bytes of a prompt must not change, because providers cache it.
func (r request) encode() ([]byte, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	end := slices.Index(body, ',')
	out := append(slices.Clone(body[:end]), `,"messages":[`...)
	for i, m := range r.Messages {
		out = appendIf(out, i > 0, `,`)
		out = append(out, `{"content":[`...)
		for j, b := range m.content {
			raw, err := json.Marshal(b)
			if err != nil {
				return nil, err
			}
			out = append(appendIf(out, j > 0, `,`), '{')
			out = appendIf(out, b.id != "", `"id":"`+b.id+`","input":`+b.arguments+`,`)
			out = append(out, raw[1:]...)
		}
		out = append(out, `],"role":"`+m.role+`"}`...)
	}
	return append(append(out, ']'), body[end:]...), nil
}

func appendIf(out []byte, isNeeded bool, text string) []byte {
	if isNeeded {
		out = append(out, text...)
	}
	return out
}
