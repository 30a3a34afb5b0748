package core

import "encoding/json"

// ModelParameters are the keys of an agent's file that go to its model with each request
// for an answer. A field that is not set leaves the choice to the provider.
type ModelParameters struct {
	Temperature     *float64        `json:"temperature,omitempty"`
	TopP            *float64        `json:"top_p,omitempty"`
	MaxOutputTokens int             `json:"max_output_tokens,omitempty"` // 0 = the model's own limit
	Stop            []string        `json:"stop,omitempty"`
	Seed            *int            `json:"seed,omitempty"`
	ReasoningEffort string          `json:"reasoning_effort,omitempty"` // empty = the model's own
	ResponseFormat  *ResponseFormat `json:"response_format,omitempty"`
}

// ResponseFormat says in which form a model answers.
type ResponseFormat struct {
	Type   FormatType      `json:"type"`
	Name   string          `json:"name,omitempty"`   // of the schema; empty = DefaultSchemaName
	Schema json.RawMessage `json:"schema,omitempty"` // JSON Schema of the answer, for FormatJSONSchema
	Strict *bool           `json:"strict,omitempty"` // nil = the provider's default
}

// FormatType is the kind of a ResponseFormat.
type FormatType string

// The kinds of formats.
const (
	FormatText       FormatType = "text"
	FormatJSONObject FormatType = "json_object"
	FormatJSONSchema FormatType = "json_schema"
)

// DefaultSchemaName is the name of a schema that has none.
const DefaultSchemaName = "answer"
