package openai

import (
	"errors"
	"testing"

	"bobbin/app/core"
	"bobbin/tests/compare"
)

// Errors name the fields that the client has sent.
func TestFieldNames(t *testing.T) {
	t.Parallel()
	chat, older, response := chatFields(completionRequest{MaxCompletionTokens: 1}), chatFields(completionRequest{}), responseFields()
	for _, tt := range []struct {
		names fieldNames
		own   string
		want  string
	}{
		{chat, "options.max_output_tokens", "max_completion_tokens"},
		{older, "options.max_output_tokens", "max_tokens"},
		{chat, "options.stop[0]", "stop[0]"},
		{chat, "options.tools[3].parameters", "tools[3].function.parameters"},
		{chat, "options.response_format.type", "response_format.type"},
		{chat, "options.response_format.name", "response_format.json_schema.name"},
		{chat, "messages[].content[2]", "messages[].content[2]"},
		{chat, "metadata", "metadata"},
		{response, "options.max_output_tokens", "max_output_tokens"},
		{response, "options.tools[3].parameters", "tools[3].parameters"},
		{response, "options.response_format.name", "text.format.name"},
		{response, "messages[].content[2]", "input[].content[2]"},
		{response, "results[0].tool_call_id", "input[0].tool_call_id"},
	} {
		var e *core.Error
		if err := tt.names.rename(oneFault(tt.own, "is wrong")); !errors.As(err, &e) || e.Fields[0].Field != tt.want {
			t.Errorf("%s: got %v, want the field %s", tt.own, err, tt.want)
		}
	}
	compare.Error(t, "an error without fields: want it as it is", core.ErrNotFound, chat.rename(core.ErrNotFound))
}
