package langchain_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/langchain"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

// server is a scripted provider over real HTTP.
type server struct{ *llmtest.Server }

func serve(t *testing.T, answer http.HandlerFunc) *server {
	t.Helper()
	return &server{llmtest.Serve(t, answer)}
}

func (s *server) open(t *testing.T, o langchain.Options) *langchain.Model {
	t.Helper()
	o.Model, o.BaseURL = "the-model", s.URL
	return must.Get(langchain.New(o))(t)
}

// write sends the lines one by one.
func write(w http.ResponseWriter, lines ...string) {
	for _, line := range lines {
		fmt.Fprint(w, line+"\n")
		http.NewResponseController(w).Flush()
	}
}

func hello() llm.Request {
	return llm.Request{System: []string{"Be brief."}, Messages: []llm.Message{{Role: core.RoleUser, Content: "Hello"}}}
}

// collect returns the answer and its text deltas.
func collect(ctx context.Context, m llm.Model, req llm.Request) (res llm.Response, deltas []string, err error) {
	res, err = llm.Collect(m.Stream(ctx, req), func(d llm.Delta) {
		if d.Text != "" {
			deltas = append(deltas, d.Text)
		}
	})
	return res, deltas, err
}

func timeLimit(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// What the server sends: an answer of "Hello there", 7 tokens to 3.
const (
	firstPiece = `{"model":"m","message":{"role":"assistant","content":"Hello "},"done":false}`
	lastPieces = `{"model":"m","message":{"role":"assistant","content":"there"},"done":false}
{"model":"m","message":{"role":"assistant","content":""},"done":true,"prompt_eval_count":7,"eval_count":3}`
)

func join(deltas []string) string { return strings.Join(deltas, "|") }
