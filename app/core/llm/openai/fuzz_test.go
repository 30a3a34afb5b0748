package openai_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core/llm"
	"bobbin/app/core/llm/openai"
)

// answered returns a model whose provider answers with the status and body.
func answered(t *testing.T, status int, header http.Header, body func() io.Reader) llm.Model {
	t.Helper()
	m, err := openai.New(openai.Options{
		Model: "m", BaseURL: baseURL, APIKey: key,
		Transport: roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(body())}, nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// FuzzStream: whatever a provider streams, the answer ends with a typed error or
// with a finish reason; calls have different ids; and how the bytes were cut into
// packets changes nothing.
func FuzzStream(f *testing.F) {
	for _, events := range [][]string{
		{text("Hel"), text("lo"), finishStop, `{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}`, done},
		{call(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}`, `{"index":1,"function":{"name":"g"}}`), finishTools, done},
		{call(`{"id":"a","function":{"name":"f","arguments":{"x":[1]}}}`), call(`{"function":{"arguments":"x"}}`), finishStop},
		{text("par"), `{"error":{"message":"m","type":"server_error","code":500}}`},
		{`{"choices":[{"index":1,"message":{"content":[{"type":"thinking","thinking":[{"text":"hm"}]},{"text":"ok"}]},"finish_reason":"length"}]}`},
		{`[{"error":{"code":429,"details":[{"retryDelay":"3s"}]}}]`},
	} {
		var body bytes.Buffer
		for _, e := range events {
			body.WriteString("data: " + e + "\n\n")
		}
		f.Add(body.Bytes())
		f.Add([]byte(events[0]))
	}
	f.Add([]byte("\xEF\xBB\xBFevent: error\r\ndata: {\r\ndata: }\r\n\r\n: x\nerror: {\"message\":\"x\"}\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		whole, err := collect(t, answered(t, 200, nil, func() io.Reader { return bytes.NewReader(body) }), ask("hi"))
		if err != nil && llm.AsError(err) == nil {
			t.Fatalf("got %v, want an *llm.Error", err)
		}
		if (err == nil) != (whole.Finish != "") {
			t.Fatalf("got finish %q with %v, want exactly one of both", whole.Finish, err)
		}
		ids := map[string]bool{}
		for i, c := range whole.ToolCalls {
			if err == nil && (c.ID == "" || ids[c.ID]) {
				t.Fatalf("call %d has the id %q, want one of its own", i, c.ID)
			}
			ids[c.ID] = true
		}
		slow, slowErr := collect(t, answered(t, 200, nil, func() io.Reader {
			return iotest.OneByteReader(bytes.NewReader(body))
		}), ask("hi"))
		if (err == nil) != (slowErr == nil) || (err != nil && llm.AsError(slowErr).Kind != llm.AsError(err).Kind) {
			t.Fatalf("got %v, and byte by byte %v", err, slowErr)
		}
		for i := range min(len(whole.ToolCalls), len(slow.ToolCalls)) {
			whole.ToolCalls[i].ID, slow.ToolCalls[i].ID = "", "" // ours are random
		}
		if diff := cmp.Diff(whole, slow); diff != "" {
			t.Fatalf("byte by byte is different (-whole +slow):\n%s", diff)
		}
	})
}

// FuzzRefusal: whatever a provider refuses with, the error is typed, has a kind
// and a message of bounded length, and does not hold the key.
func FuzzRefusal(f *testing.F) {
	f.Add(400, []byte(`{"error":{"message":"order 4290","code":"x"}}`), "")
	f.Add(429, []byte(`[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"34s"}]}}]`), "12")
	f.Add(400, []byte(`{"error":{"message":"This model's maximum context length is 8192 tokens. However, you requested 9000 tokens"}}`), "-1")
	f.Add(403, []byte(`{"error":{"code":403,"message":"x","metadata":{"reasons":["a"],"raw":"{\"error\":{\"message\":\"y\"}}"}}}`), "Wed, 21 Oct 2099 07:28:00 GMT")
	f.Add(500, []byte("<html>"), "1e99")
	f.Add(422, []byte(`{"detail":[{"msg":"x"}],"message":{"detail":1}}`), "NaN")
	f.Add(400, []byte(key), "")
	f.Fuzz(func(t *testing.T, status int, body []byte, after string) {
		if status >= 200 && status <= 299 {
			return
		}
		header := http.Header{"Retry-After": {after}}
		_, err := collect(t, answered(t, status, header, func() io.Reader { return bytes.NewReader(body) }), ask("hi"))
		e := llm.AsError(err)
		if e == nil || e.Kind == "" || e.Message == "" || len(e.Message) > 1_100 || len(e.Code) > 1_100 {
			t.Fatalf("got %+v, want a typed error with a message of bounded length", err)
		}
		if e.RetryAfter < 0 || e.Limit < 0 || e.Requested < 0 {
			t.Fatalf("got %+v, want no number below zero", e)
		}
		if bytes.Contains([]byte(e.Error()+e.Code), []byte(key)) {
			t.Fatalf("got %v, want it without the key", e)
		}
		if (e.Limit != 0 || e.Requested != 0) && e.Kind != llm.KindContextLength {
			t.Fatalf("got numbers with %s", e.Kind)
		}
	})
}
