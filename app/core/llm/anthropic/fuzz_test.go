package anthropic_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/anthropic"
)

// FuzzStream: whatever the provider streams, the answer ends with a typed error or
// with a finish reason; calls have different ids; and how the bytes were cut into
// packets changes nothing.
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
	f.Fuzz(func(t *testing.T, body []byte) {
		read := func(r io.Reader) (llm.Response, error) {
			m, err := anthropic.New(anthropic.Options{Model: "m", BaseURL: "http://provider.test", Transport: transport(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 200, Body: io.NopCloser(r)}, nil
			})})
			if err != nil {
				t.Fatal(err)
			}
			return call(t, m, ask("hi"))
		}
		whole, err := read(bytes.NewReader(body))
		if err != nil && llm.AsError(err) == nil {
			t.Fatalf("got %v, want an *llm.Error", err)
		}
		if (err == nil) != (whole.Finish != "") {
			t.Fatalf("got finish %q with %v, want exactly one of both", whole.Finish, err)
		}
		ids := map[string]bool{"": true}
		for _, c := range whole.ToolCalls {
			if ids[c.ID] {
				t.Fatalf("got the calls %+v, want an id of its own for each", whole.ToolCalls)
			}
			ids[c.ID] = true
		}
		byByte, err2 := read(iotest.OneByteReader(bytes.NewReader(body)))
		if diff := cmp.Diff(whole, byByte, cmpopts.IgnoreFields(core.ToolCall{}, "ID")); diff != "" || (err == nil) != (err2 == nil) {
			t.Fatalf("byte by byte (-whole +got), errors %v and %v:\n%s", err, err2, diff)
		}
	})
}

// transport is a function as a transport.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
