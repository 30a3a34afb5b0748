package anthropic_test

import (
	"net/http"
	"strings"
	"testing"

	"bobbin/app/core/llm"
	"bobbin/app/core/llm/anthropic"
	"bobbin/tests/llmtest"
)

// FuzzStream: see llmtest.
func FuzzStream(f *testing.F) {
	for _, events := range [][]string{
		{`{"type":"message_start","message":{"usage":{"input_tokens":3}}}`, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}}`, `{"type":"content_block_stop","index":0}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}`, `{"type":"message_stop"}`},
		{`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f","input":{"x":[1]}}}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"a","name":"f"}}`, `{"type":"content_block_stop","index":0}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{"}}`, `{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`, `{"type":"message_stop"}`},
		{`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"h","signature":"s"}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"t"}}`,
			`{"type":"content_block_stop","index":0}`, `{"type":"error","error":{"type":"overloaded_error","message":"m"}}`},
	} {
		f.Add([]byte("data: " + strings.Join(events, "\n\ndata: ") + "\n\n"))
		f.Add([]byte(events[0]))
	}
	f.Add([]byte(fine))
	f.Add([]byte(`{"type":"message","content":[{"type":"tool_use","name":"f","input":null},3],"stop_reason":"x","usage":7}`))
	f.Add([]byte("event: error\r\ndata: {\r\ndata: }\r\n\r\n: x\n"))
	llmtest.FuzzStream(f, func(transport http.RoundTripper) (llm.Model, error) {
		return anthropic.New(anthropic.Options{Model: "m", Transport: transport})
	})
}
