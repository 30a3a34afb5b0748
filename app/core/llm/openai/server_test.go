package openai_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"bobbin/app/core/llm"
	"bobbin/app/core/llm/openai"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

// baseURL is where the scripted provider is.
const baseURL = llmtest.MemoryURL + "/v1"

// What the tests write short.
var (
	stream  = llmtest.Stream
	say     = llmtest.SendEvents
	refuse  = llmtest.Reply
	ask     = llmtest.Ask
	collect = llmtest.Collect
)

// server is a scripted provider in memory.
type server struct{ *llmtest.Server }

func serve(t *testing.T, answer http.HandlerFunc) *server {
	t.Helper()
	return &server{llmtest.ServeInMemory(t, answer)}
}

// model returns a model that talks to the server.
func (s *server) model(t *testing.T, options openai.Options) *openai.Model {
	t.Helper()
	if options.Model == "" {
		options.Model = "test-model"
	}
	if options.BaseURL == "" {
		options.BaseURL = baseURL
	}
	options.Transport = s.Transport
	return must.Get(openai.New(options))(t)
}

// text is an event with text.
func text(s string) string {
	return fmt.Sprintf(`{"choices":[{"index":0,"delta":{"content":%q},"finish_reason":null}]}`, s)
}

// call is an event with pieces of tool calls.
func call(pieces ...string) string {
	return fmt.Sprintf(`{"choices":[{"index":0,"delta":{"tool_calls":[%s]},"finish_reason":null}]}`, strings.Join(pieces, ","))
}

const (
	finishStop  = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	finishTools = `{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`
	done        = "[DONE]"
)

// calls writes tool calls short, to compare them.
func calls(res llm.Response) string {
	out := make([]string, 0, len(res.ToolCalls))
	for _, c := range res.ToolCalls {
		out = append(out, c.ID+" "+c.Name+" "+c.Arguments)
	}
	return strings.Join(out, " | ")
}
