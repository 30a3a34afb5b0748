package openai_test

import (
	"bytes"
	"net/http"
	"testing"

	"bobbin/app/core/llm"
	"bobbin/app/core/llm/openai"
	"bobbin/tests/llmtest"
)

// FuzzStream: see llmtest.
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
	llmtest.FuzzStream(f, func(transport http.RoundTripper) (llm.Model, error) {
		return openai.New(openai.Options{Model: "m", BaseURL: baseURL, Transport: transport})
	})
}
