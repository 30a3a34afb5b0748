package openai

import (
	"errors"
	"slices"
	"strings"

	"bobbin/app/core"
)

// fieldNames are the names that clients know for fields in errors, which Bobbin's own API names
// otherwise.
type fieldNames struct {
	whole map[string]string // by the own name
	parts *strings.Replacer
}

// chatFields are the names in chat completions.
func chatFields(body completionRequest) fieldNames {
	limit := "max_completion_tokens"
	if body.MaxCompletionTokens == 0 {
		limit = "max_tokens"
	}
	return fieldNames{
		map[string]string{"content": "messages", "author": "messages", "options": "tools", "options.instructions": "messages", "options.max_output_tokens": limit},
		strings.NewReplacer("options.response_format.type", "response_format.type", "options.response_format.", "response_format.json_schema.",
			"options.", "", "].name", "].function.name", "].parameters", "].function.parameters", "results[", "messages["),
	}
}

// responseFields returns the names in responses.
func responseFields() fieldNames {
	return fieldNames{
		map[string]string{"content": "input", "messages": "input", "author": "input", "options": "tools", "options.reasoning_effort": "reasoning.effort"},
		strings.NewReplacer("options.response_format", "text.format", "options.", "", "messages[].", "input[].", "messages[", "input[", "results[", "input["),
	}
}

// itemFields are the names in items that are added to a conversation.
func itemFields() fieldNames {
	return fieldNames{
		map[string]string{"role": "items[].role", "content": "items[].content", "tool_call_id": "items[].call_id", "tool_calls": "items"},
		strings.NewReplacer("tool_calls[", "items["),
	}
}

// rename returns the error with the client's names of fields.
func (n fieldNames) rename(err error) error {
	var e *core.Error
	if !errors.As(err, &e) || len(e.Fields) == 0 {
		return err
	}
	renamed := *e
	renamed.Fields = slices.Clone(e.Fields)
	for i, f := range renamed.Fields {
		name, ok := n.whole[f.Field]
		if !ok {
			name = n.parts.Replace(f.Field)
		}
		renamed.Fields[i].Field = name
	}
	return &renamed
}
