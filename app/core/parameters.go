package core

import "encoding/json"

// ModelParameters are the keys of an agent's file that go to its model with each request
// for an answer. A field that is not set leaves the choice to the provider.
type ModelParameters struct {
	Temperature     *float64        `json:"temperature,omitempty" max:"2"`
	TopP            *float64        `json:"top_p,omitempty" max:"1"`
	MaxOutputTokens int             `json:"max_output_tokens,omitempty" doc:"Maximum tokens of an answer." max:"1000000"`
	Stop            []string        `json:"stop,omitempty" max:"4" doc:"Of at most 256 bytes each."`
	Seed            *int            `json:"seed,omitempty" max:"2147483647"`
	ReasoningEffort string          `json:"reasoning_effort,omitempty" enum:",none,minimal,low,medium,high,xhigh"` // empty = the model's own
	ResponseFormat  *ResponseFormat `json:"response_format,omitempty"`
}

// ResponseFormat says in which form a model answers.
type ResponseFormat struct {
	Type   FormatType      `json:"type" enum:"text,json_object,json_schema"`
	Name   string          `json:"name,omitempty"`                   // of the schema; empty = DefaultSchemaName
	Schema json.RawMessage `json:"schema,omitempty" schema:"Object"` // JSON Schema of the answer, for FormatJSONSchema
	Strict *bool           `json:"strict,omitempty"`                 // nil = the provider's default
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
