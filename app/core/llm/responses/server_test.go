package responses_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"bobbin/app/core/llm"
	"bobbin/app/core/llm/responses"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

// key stands for an API key. No error and no log may hold it.
const key = "the-key-of-the-tests"

// serve answers the requests in order; the last answer is repeated.
func serve(t *testing.T, answers ...http.HandlerFunc) *llmtest.Server {
	t.Helper()
	return llmtest.Serve(t, answers...)
}

// stream answers with the events.
func stream(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		llmtest.SendEvents(w, events...)
	}
}

// refuse answers with a status and a body.
func refuse(status int, body string) http.HandlerFunc {
	return llmtest.Reply(status, body)
}

// done is the event of a complete item.
func done(index int, item string) string {
	return fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, index, item)
}

const completed = `{"type":"response.completed","response":{"object":"response","status":"completed","model":"gpt-6-2026-09-01","output":[]}}`

var fine = stream(`{"type":"response.output_text.delta","output_index":0,"delta":"ok"}`, completed)

func open(t *testing.T, s *llmtest.Server, options responses.Options) *responses.Model {
	t.Helper()
	if options.Model == "" {
		options.Model = "gpt-6"
	}
	options.BaseURL = s.URL + "/v1"
	return must.Get(responses.New(options))(t)
}

var (
	ask     = llmtest.Ask
	collect = llmtest.Collect
)

// sent returns what a model sends for the request.
func sent(t *testing.T, options responses.Options, req llm.Request) llmtest.Received {
	t.Helper()
	s := serve(t, fine)
	if res, err := collect(t, open(t, s, options), req); err != nil || res.Text != "ok" {
		t.Fatalf("got %q, %v", res.Text, err)
	}
	return s.Last()
}

// toJSON returns the value as JSON.
func toJSON(t *testing.T, v any) string {
	t.Helper()
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	must.Do(t, encoder.Encode(v))
	return strings.TrimSpace(b.String())
}
