package responses_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/responses"
)

// key stands for an API key. No error and no log may hold it.
const key = "the-key-of-the-tests"

// server is a scripted provider.
type server struct {
	url      string
	requests []request
}

// request is a request as the provider got it.
type request struct {
	path   string
	header http.Header
	raw    string
	body   map[string]any
}

// serve answers the requests in order; the last answer is repeated.
func serve(t *testing.T, answers ...http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read the request: %v", err)
		}
		got := request{path: r.URL.Path, header: r.Header.Clone(), raw: string(raw)}
		if err := json.Unmarshal(raw, &got.body); err != nil {
			t.Errorf("the request is no JSON: %v", err)
		}
		s.requests = append(s.requests, got)
		answers[min(len(s.requests), len(answers))-1](w, r)
	}))
	t.Cleanup(web.Close)
	s.url = web.URL + "/v1"
	return s
}

// stream answers with the events.
func stream(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Request-Id", "req_1")
		for _, e := range events {
			fmt.Fprintf(w, "data: %s\n\n", e)
		}
	}
}

// refuse answers with a status and a body.
func refuse(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Request-Id", "req_1")
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

// done is the event of a complete item.
func done(index int, item string) string {
	return fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, index, item)
}

const completed = `{"type":"response.completed","response":{"object":"response","status":"completed","model":"gpt-6-2026-09-01","output":[]}}`

var fine = stream(`{"type":"response.output_text.delta","output_index":0,"delta":"ok"}`, completed)

func open(t *testing.T, s *server, options responses.Options) *responses.Model {
	t.Helper()
	if options.Model == "" {
		options.Model = "gpt-6"
	}
	options.BaseURL = s.url
	m, err := responses.New(options)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return m
}

func collect(t *testing.T, m llm.Model, req llm.Request) (llm.Response, error) {
	t.Helper()
	return llm.Collect(m.Stream(t.Context(), req), nil)
}

// ask is a request with one message of the user.
func ask(content string) llm.Request {
	return llm.Request{Messages: []llm.Message{{Role: core.RoleUser, Content: content}}}
}

// sent returns what a model sends for the request.
func sent(t *testing.T, options responses.Options, req llm.Request) request {
	t.Helper()
	s := serve(t, fine)
	if res, err := collect(t, open(t, s, options), req); err != nil || res.Text != "ok" {
		t.Fatalf("got %q, %v", res.Text, err)
	}
	return s.requests[0]
}

// toJSON returns the value as JSON.
func toJSON(t *testing.T, v any) string {
	t.Helper()
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(b.String())
}
