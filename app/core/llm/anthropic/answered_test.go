package anthropic_test

import (
	"testing"

	"bobbin/app/core/llm/anthropic"
)

// Which model has answered comes with the end of the answer, streamed or not.
func TestAnsweringModel(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"whole": `{"type":"message","model":"claude-20260101","content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn"}`,
		"streamed": "data: {\"type\":\"message_start\",\"message\":{\"model\":\"claude-20260101\",\"usage\":{\"input_tokens\":1}}}\n\n" +
			"data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n",
	} {
		var got string
		for d, err := range open(t, anthropic.Options{BaseURL: serve(t, 200, answer).URL}).Stream(t.Context(), ask("hi")) {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if d.Finish != "" {
				got = d.Model
			}
		}
		if got != "claude-20260101" {
			t.Errorf("%s: got model %q", name, got)
		}
	}
}
