package openai_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/openai"
	"bobbin/tests/compare"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

// conversation is a request with every kind of message in it.
func conversation() llm.Request {
	return llm.Request{
		System: []string{"You are kind.", "", "Be brief."},
		Messages: []llm.Message{
			{Role: core.RoleSystem, Content: "an old system message"},
			{Role: core.RoleUser, Content: "What is 1+1, and 2+2?"},
			{Role: core.RoleAssistant, Content: "I will calculate.", ToolCalls: []core.ToolCall{
				{ID: "a", Name: "calculator", Arguments: `{"x": 1}`}, {ID: "b", Name: "calculator"},
			}},
			{Role: core.RoleTool, ToolCallID: "a", ToolName: "calculator", Content: "two"},
			{Role: core.RoleTool, ToolCallID: "b", ToolName: "calculator", Content: ""},
			{Role: core.RoleAssistant, ToolCalls: []core.ToolCall{{ID: "c", Name: "clock", Arguments: "not JSON <&>"}}},
			{Role: core.RoleTool, ToolCallID: "c", ToolName: "clock", Content: "noon"},
			{Role: core.RoleUser, Content: "Well?"},
			{Role: core.RoleAssistant, Content: "It is 2."},
		},
		Tools: []llm.ToolSpec{
			{Name: "calculator", Description: "Calculates.", Parameters: json.RawMessage(`{"type":"object","properties":{"b":{},"a":{}}}`)},
			{Name: "clock", Description: "Tells the time."},
		},
		MaxOutputTokens: 500,
	}
}

func TestMaxTokensFieldByProvider(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options openai.Options
		field   string
	}{
		"openai":        {openai.Options{Provider: "openai"}, "max_completion_tokens"},
		"openai legacy": {openai.Options{Provider: "openai", LegacyMaxTokens: true}, "max_tokens"},
		"gemini":        {openai.Options{Provider: "gemini"}, "max_tokens"},
		"ollama":        {openai.Options{Provider: "ollama"}, "max_tokens"},
		"vllm":          {openai.Options{Provider: "vllm"}, "max_tokens"},
		"mistral":       {openai.Options{Provider: "mistral"}, "max_tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := sent(t, c.options, conversation())
			for _, field := range []string{"max_tokens", "max_completion_tokens"} {
				if _, ok := got[field]; ok != (field == c.field) {
					t.Errorf("got %s = %v, want only %s", field, got[field], c.field)
				}
			}
			if _, ok := got["stream_options"]; ok == (name == "mistral") {
				t.Errorf("got stream_options %v", got["stream_options"])
			}
		})
	}
}

// Gemini's schemas have one type: [x, null] is sent in its way.
func TestNullableTypes(t *testing.T) {
	t.Parallel()
	req := conversation()
	req.Tools[0].Parameters = json.RawMessage(`{"properties":{"a":{"items":{"type":["string","null"]},"type":["null","array"]}},"type":"object"}`)
	for provider, want := range map[string]string{
		"gemini": `{"properties":{"a":{"items":{"nullable":true,"type":"string"},"nullable":true,"type":"array"}},"type":"object"}`,
		"openai": string(req.Tools[0].Parameters),
	} {
		tools, _ := sent(t, openai.Options{Provider: provider}, req)["tools"].([]any)
		got := must.Get(json.Marshal(tools[0].(map[string]any)["function"].(map[string]any)["parameters"]))(t)
		compare.Equal(t, provider, want, string(got))
	}
}

// W13: where a provider lacks the tool choice "none", tool turns become text.
func TestToolTurnsBecomeText(t *testing.T) {
	t.Parallel()
	req := conversation()
	req.ToolChoice = core.ToolChoiceNone
	got := sent(t, openai.Options{Provider: "ollama"}, req)
	want := []any{
		map[string]any{"role": "system", "content": "You are kind.\n\nBe brief."},
		map[string]any{"role": "user", "content": "What is 1+1, and 2+2?"},
		map[string]any{"role": "assistant", "content": "I will calculate.\n[called calculator with {\"x\": 1}]\n[called calculator with {}]"},
		map[string]any{"role": "user", "content": "[result of calculator]\ntwo\n\n[result of calculator]\n"},
		map[string]any{"role": "assistant", "content": "[called clock with {\"unreadable_arguments\":\"not JSON \\u003c\\u0026\\u003e\"}]"},
		map[string]any{"role": "user", "content": "[result of clock]\nnoon\n\nWell?"},
		map[string]any{"role": "assistant", "content": "It is 2."},
	}
	compare.Equal[any](t, "messages", want, got["messages"])
	compare.True(t, got["tools"] == nil && got["tool_choice"] == nil, "got tools %v and tool_choice %v, want neither", got["tools"], got["tool_choice"])
	req.ToolChoice = core.ToolChoiceAuto
	compare.Equal(t, "tools: want both while tools may be used", 2, len(sent(t, openai.Options{Provider: "ollama"}, req)["tools"].([]any)))
}

func TestCallIDsThatAProviderRefuses(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 41)
	req := llm.Request{Messages: []llm.Message{
		{Role: core.RoleUser, Content: "go"},
		{Role: core.RoleAssistant, ToolCalls: []core.ToolCall{{ID: "call_1", Name: "f"}, {ID: "abcDEF123", Name: "f"}, {ID: long, Name: "f"}}},
		{Role: core.RoleTool, ToolCallID: "call_1", Content: "1"},
		{Role: core.RoleTool, ToolCallID: "abcDEF123", Content: "2"},
		{Role: core.RoleTool, ToolCallID: long, Content: "3"},
	}}
	ids := func(provider string) []string {
		messages := sent(t, openai.Options{Provider: provider}, req)["messages"].([]any)
		var out []string
		for _, c := range messages[1].(map[string]any)["tool_calls"].([]any) {
			out = append(out, c.(map[string]any)["id"].(string))
		}
		for i, m := range messages[2:] {
			if got := m.(map[string]any)["tool_call_id"]; got != out[i] {
				t.Errorf("%s: result %d names %v, its call is %s", provider, i, got, out[i])
			}
		}
		return out
	}
	got := ids("openai")
	compare.True(t, got[0] == "call_1" && got[1] == "abcDEF123" && len(got[2]) == 40, "openai: got %q, want the short ones unchanged", got)
	if got := ids("mistral"); len(got[0]) != 9 || got[1] != "abcDEF123" || len(got[2]) != 9 || got[0] == got[2] {
		t.Errorf("mistral: got %q, want nine characters each", got)
	}
}

func TestUnknownRoleIsRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, stream(done))
	_, err := collect(t, s.model(t, openai.Options{}), llm.Request{Messages: []llm.Message{{Role: "ghost", Content: "boo"}}})
	if !llm.IsKind(err, llm.KindInvalid) || !strings.Contains(err.Error(), `"ghost"`) || len(s.Received()) != 0 {
		t.Errorf("got %v after %d requests, want KindInvalid before any", err, len(s.Received()))
	}
}

// L5: notes on a tool loop follow the question. A server of one's own, whose template
// may want user and assistant to alternate, gets them as one message; OpenAI as they are.
func TestUsersInARow(t *testing.T) {
	t.Parallel()
	req := llm.Request{Messages: []llm.Message{
		{Role: core.RoleUser, Content: "What is it?", Media: []llm.Media{{Part: core.Part{MediaType: "image/png"}, Data: []byte("x")}}},
		{Role: core.RoleUser, Content: "Notes on the work so far."}, {Role: core.RoleUser},
		{Role: core.RoleAssistant, ToolCalls: []core.ToolCall{{ID: "a", Name: "f", Arguments: "{}"}}},
		{Role: core.RoleTool, ToolCallID: "a", Content: "found"}, {Role: core.RoleUser, Content: "Well?"},
	}}
	for name, c := range map[string]struct {
		options openai.Options
		want    string
	}{
		"a server of one's own":          {openai.Options{BaseURL: baseURL}, "user assistant tool assistant user"},
		"OpenAI":                         {openai.Options{}, "user user user assistant tool user"},
		"Gemini":                         {openai.Options{Provider: llm.ProviderGemini}, "user user user assistant tool user"},
		"Ollama, which joins them":       {openai.Options{Provider: llm.ProviderOllama}, "user user user assistant tool user"},
		"Mistral":                        {openai.Options{Provider: llm.ProviderMistral}, "user assistant tool assistant user"},
		"OpenRouter":                     {openai.Options{Provider: llm.ProviderOpenRouter}, "user assistant tool assistant user"},
		"a provider that nobody has met": {openai.Options{Provider: "house", BaseURL: baseURL}, "user assistant tool assistant user"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var body struct {
				Messages []struct {
					Role    string
					Content any
				}
			}
			c.options.Model = "m"
			c.options.Transport = llmtest.Transport(func(r *http.Request) (*http.Response, error) {
				if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
					t.Error(err)
				}
				return nil, errors.New("enough")
			})
			m := must.Get(openai.New(c.options))(t)
			if _, err := llm.Collect(m.Stream(t.Context(), req), nil); err == nil {
				t.Fatal("got an answer")
			}
			var roles []string
			for _, m := range body.Messages {
				roles = append(roles, m.Role)
			}
			compare.Equal(t, "the roles", c.want, strings.Join(roles, " "))
			text, _ := json.Marshal(body.Messages[0].Content)
			if joined := strings.Contains(string(text), `"What is it?\n\nNotes on the work so far."`); joined != !strings.HasPrefix(c.want, "user user") || !strings.Contains(string(text), "image") {
				t.Errorf("got %s", text)
			}
		})
	}
}

// key stands for an API key. No error and no log may hold it.
const key = "sk-test-0123456789"

func TestKeyIsNotPrinted(t *testing.T) {
	t.Parallel()
	options := openai.Options{Model: "m", Provider: "openai", APIKey: key, BaseURL: "http://u:" + key + "@provider.test/v1"}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "options", options)
	m := must.Get(openai.New(options))(t)
	for name, got := range map[string]string{
		"%v": fmt.Sprintf("%v", options), "%+v": fmt.Sprintf("%+v", options), "%#v": fmt.Sprintf("%#v", options),
		"a pointer": fmt.Sprintf("%+v", &options), "slog": log.String(), "info": fmt.Sprintf("%+v", m.Info()),
	} {
		compare.True(t, !strings.Contains(got, key) && got != "", "%s: got %s, want it without the key", name, got)
	}
	compare.Equal(t, "fmt.Sprint(options)", "{openai model m at http://provider.test/v1}", fmt.Sprint(options))
}

func TestNoKeyNoHeader(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", key)
	t.Setenv("OPENAI_ORGANIZATION", "org-of-another-provider")
	t.Setenv("OPENAI_MODEL", "another-model")
	t.Setenv("OPENAI_BASE_URL", "http://elsewhere.test")
	s := serve(t, stream(text("a"), finishStop, done))
	must.Get(collect(t, s.model(t, openai.Options{Provider: "ollama", Model: "llama"}), ask("hi")))(t)
	r := s.Received()[0]
	compare.Equal(t, "request: want nothing that the environment says", []any{"", "", "/v1/chat/completions"}, []any{r.Header.Get("Authorization"), r.Header.Get("OpenAI-Organization"), r.Path})
	got := s.Last().JSON()["model"]
	compare.True(t, got == "llama", "got model %v, want llama", got)
}

// The variables of a proxy are read once in a process, so this needs one of its own.
func TestProxyOfTheEnvironment(t *testing.T) {
	t.Parallel()
	if os.Getenv("TEST_PROXIED") != "" {
		m := must.Get(openai.New(openai.Options{Model: "m", BaseURL: "http://provider.invalid/v1"}))(t)
		compare.Equal(t, "got.Text: want an answer through the proxy", "through the proxy", must.Get(collect(t, m, ask("hi")))(t).Text)
		return
	}
	var asked string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.String()
		say(w, text("through the proxy"), finishStop, done)
	}))
	defer proxy.Close()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestProxyOfTheEnvironment$", "-test.count=1")
	child.Env = append(os.Environ(), "TEST_PROXIED=1", "HTTP_PROXY="+proxy.URL, "NO_PROXY=")
	if out, err := child.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	compare.Equal(t, "the proxy was asked for", "http://provider.invalid/v1/chat/completions", asked)
}

func TestOptionsThatCannotWork(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options openai.Options
		says    string
	}{
		"no model":   {openai.Options{Provider: "openai"}, "no model name"},
		"no address": {openai.Options{Provider: "vllm", Model: "m"}, "needs a base_url"},
		"no scheme":  {openai.Options{Model: "m", BaseURL: "localhost:8000/v1"}, "not an http or https address"},
		"no web":     {openai.Options{Model: "m", BaseURL: "ftp://provider.test/v1"}, "not an http or https address"},
		"no host":    {openai.Options{Model: "m", BaseURL: "http:///v1"}, "not an http or https address"},
		"broken":     {openai.Options{Model: "m", BaseURL: "http://%zz"}, "not an http or https address"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := openai.New(c.options)
			compare.True(t, err != nil && strings.Contains(err.Error(), c.says), "got %v, want %q", err, c.says)
		})
	}
}

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
