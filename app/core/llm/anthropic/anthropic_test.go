package anthropic_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/anthropic"
	"bobbin/tests/compare"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

// provider answers every request in the same way.
type provider struct{ *llmtest.Server }

func serve(t *testing.T, status int, answer string) provider {
	t.Helper()
	return provider{llmtest.Serve(t, llmtest.Reply(status, answer))}
}

// raw returns the last request's body.
func (p provider) raw() string { return string(p.Last().Body) }

func (p provider) body() map[string]any { return p.Last().JSON() }

var (
	ask  = llmtest.Ask
	call = llmtest.Collect
)

func open(t *testing.T, options anthropic.Options) *anthropic.Model {
	t.Helper()
	if options.Model == "" {
		options.Model = "claude-sonnet-4-5"
	}
	return must.Get(anthropic.New(options))(t)
}

// fine is a whole answer.
const fine = `{"type":"message","content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn"}`

// sent returns what a model sends for the request.
func sent(t *testing.T, options anthropic.Options, req llm.Request) provider {
	t.Helper()
	p := serve(t, 200, fine)
	options.BaseURL = p.URL
	if res, err := call(t, open(t, options), req); err != nil || res.Text != "ok" {
		t.Fatalf("call: got %q, %v", res.Text, err)
	}
	return p
}

func TestThinkingByGeneration(t *testing.T) {
	t.Parallel()
	const budget, adaptive, none = `{"budget_tokens":2048,"type":"enabled"}`, `{"display":"summarized","type":"adaptive"}`, "null"
	warm := 0.5
	for model, want := range map[string]struct{ thinking, temperature string }{
		"claude-3-7-sonnet-20250219":                 {budget, "0.5"},
		"claude-sonnet-4-20250514":                   {budget, "0.5"},
		"claude-opus-4-1":                            {budget, "0.5"},
		"claude-sonnet-4-5-20250929":                 {budget, "0.5"},
		"claude-haiku-4-5":                           {budget, "0.5"},
		"claude-opus-4-6":                            {adaptive, "0.5"},
		"claude-mythos-preview":                      {adaptive, "0.5"},
		"anthropic/claude-opus-4.7":                  {adaptive, "null"},
		"claude-haiku-5-5":                           {adaptive, "null"},
		"us.anthropic.claude-sonnet-5-v1:0":          {adaptive, "null"},
		"claude-fable-5-1":                           {adaptive, "null"},
		"some-other-model":                           {budget, "0.5"},
		"claude-3-5-haiku-20241022":                  {budget, "0.5"},
		"claude-opus-4-20250514":                     {budget, "0.5"},
		"eu.anthropic.claude-opus-4-8-20260101-v1:0": {adaptive, "null"},
	} {
		t.Run(model, func(t *testing.T) {
			t.Parallel()
			options := anthropic.Options{Model: model, Thinking: 2_048, Info: llm.Info{MaxOutput: 8_192}}
			if got, _ := json.Marshal(sent(t, options, ask("hi")).body()["thinking"]); string(got) != want.thinking {
				t.Errorf("got thinking %s, want %s", got, want.thinking)
			}
			req := ask("hi")
			req.Temperature = &warm
			p := sent(t, options, req)
			if got, _ := json.Marshal(p.body()["thinking"]); string(got) != none {
				t.Errorf("with a temperature: got thinking %s, want none", got)
			}
			if got, _ := json.Marshal(p.body()["temperature"]); string(got) != want.temperature {
				t.Errorf("got temperature %s, want %s", got, want.temperature)
			}
			options.Thinking = 0
			if got, _ := json.Marshal(sent(t, options, ask("hi")).body()["thinking"]); string(got) != none {
				t.Errorf("without a budget: got thinking %s, want none", got)
			}
		})
	}
}

func TestThinkingLeavesRoomForTheAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		asked, most int
		want        string
		maxTokens   float64
	}{
		"room for all":          {10_000, 64_000, `{"budget_tokens":4096,"type":"enabled"}`, 10_000},
		"the model's own limit": {0, 10_000, `{"budget_tokens":4096,"type":"enabled"}`, 10_000},
		"nothing is known":      {0, 0, `{"budget_tokens":3072,"type":"enabled"}`, 4_096},
		"little room":           {3_000, 0, `{"budget_tokens":1976,"type":"enabled"}`, 3_000},
		"the least":             {2_048, 0, `{"budget_tokens":1024,"type":"enabled"}`, 2_048},
		"too little":            {2_047, 0, "null", 2_047},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := ask("hi")
			req.MaxOutputTokens = c.asked
			p := sent(t, anthropic.Options{Thinking: 4_096, Info: llm.Info{MaxOutput: c.most}}, req)
			if got, _ := json.Marshal(p.body()["thinking"]); string(got) != c.want || p.body()["max_tokens"] != c.maxTokens {
				t.Errorf("got %s of %v, want %s of %v", got, p.body()["max_tokens"], c.want, c.maxTokens)
			}
		})
	}
}

// A turn whose tool calls came without thinking of this model goes on without.
func TestThinkingNotInTheMiddleOfATurn(t *testing.T) {
	t.Parallel()
	own := core.Part{Type: "reasoning", Text: "t", Signature: "s", Origin: "anthropic/claude-sonnet-4-5"}
	other := own
	other.Origin = "anthropic/claude-opus-4-5"
	for name, c := range map[string]struct {
		parts []core.Part
		after []llm.Message
		model string
		want  bool
	}{
		"own":                    {[]core.Part{own}, nil, "claude-sonnet-4-5", true},
		"none":                   {nil, nil, "claude-sonnet-4-5", false},
		"another model's":        {[]core.Part{other}, nil, "claude-sonnet-4-5", false},
		"unsigned":               {[]core.Part{{Type: "reasoning", Text: "t"}}, nil, "claude-sonnet-4-5", false},
		"then asked on":          {nil, []llm.Message{{Role: core.RoleUser, Content: "and?"}}, "claude-sonnet-4-5", false},
		"then answered":          {nil, []llm.Message{{Role: core.RoleAssistant, Content: "so"}, {Role: core.RoleUser, Content: "and?"}}, "claude-sonnet-4-5", true},
		"a model that may go on": {nil, nil, "claude-opus-4-6", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := ask("hi")
			req.Tools = []llm.ToolSpec{{Name: "f"}}
			req.Messages = append(req.Messages,
				llm.Message{Role: core.RoleAssistant, Parts: c.parts, ToolCalls: []core.ToolCall{{ID: "a", Name: "f"}}},
				llm.Message{Role: core.RoleTool, ToolCallID: "a", Content: "1"})
			req.Messages = append(req.Messages, c.after...)
			p := sent(t, anthropic.Options{Model: c.model, Thinking: 2_048, Info: llm.Info{MaxOutput: 8_192}}, req)
			compare.Equal(t, "thinking", c.want, p.body()["thinking"] != nil)
		})
	}
}

func TestCacheBreakpoints(t *testing.T) {
	t.Parallel()
	tools := []llm.ToolSpec{{Name: "f"}, {Name: "g"}}
	long := []llm.Message{{Role: core.RoleUser, Content: "a"}, {Role: core.RoleAssistant, Content: "b"}, {Role: core.RoleUser, Content: "c"}}
	for name, c := range map[string]struct {
		req  llm.Request
		want int
	}{
		"a summary's request": {llm.Request{System: []string{"s"}, Messages: long[:1]}, 1},
		"the first message":   {llm.Request{System: []string{"s", "usage"}, Tools: tools, Messages: long[:1]}, 3},
		"a conversation":      {llm.Request{System: []string{"s"}, Tools: tools, Messages: long}, 3},
		"everything":          {llm.Request{System: []string{"s", "summary", "pinned", "left out", "usage"}, Tools: tools, Messages: long}, 4},
		"recalled passages": {llm.Request{System: []string{"s", "summary"}, Tools: tools, Messages: append(slices.Clone(long[:2]),
			llm.Message{Role: core.RoleUser, Content: "recalled", Passing: true}, long[2])}, 4},
		"nothing but a message": {llm.Request{Messages: long[:1]}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := sent(t, anthropic.Options{}, c.req)
			if got := strings.Count(p.raw(), `"cache_control":{"type":"ephemeral"}`); got != c.want {
				t.Errorf("got %d breakpoints, want %d: %s", got, c.want, p.raw())
			}
		})
	}
}

func TestArgumentsThatAreNoObject(t *testing.T) {
	t.Parallel()
	for arguments, want := range map[string]string{
		"":                              `"input":{}`,
		`{"a": 1.0}`:                    `"input":{"a": 1.0}`,
		" {\n} ":                        "\"input\": {\n} ",
		`[1]`:                           `"input":{"unreadable_arguments":"[1]"}`,
		`{"a":`:                         `"input":{"unreadable_arguments":"{\"a\":"}`,
		`"\u0001arguments 1"`:           `"input":{"unreadable_arguments":"\"\\u0001arguments 1\""}`,
		`{"input":"\u0001arguments 1"}`: `"input":{"input":"\u0001arguments 1"}`,
	} {
		req := ask(`"input":"` + "\x01" + `arguments 0"`)
		req.Tools = []llm.ToolSpec{{Name: "f"}}
		req.Messages = append(req.Messages,
			llm.Message{Role: core.RoleAssistant, ToolCalls: []core.ToolCall{{ID: "a", Name: "f", Arguments: arguments}, {ID: "b", Name: "f", Arguments: `{"second":2}`}}},
			llm.Message{Role: core.RoleTool, ToolCallID: "b", Content: "2"}, llm.Message{Role: core.RoleTool, ToolCallID: "a", Content: "1"})
		p := sent(t, anthropic.Options{}, req)
		if !strings.Contains(p.raw(), want) || !strings.Contains(p.raw(), `"input":{"second":2}`) {
			t.Errorf("%s: got %s, want %s in it", arguments, p.raw(), want)
		}
		if strings.Index(p.raw(), `"tool_use_id":"a"`) > strings.Index(p.raw(), `"tool_use_id":"b"`) {
			t.Errorf("got the results in another order than the calls: %s", p.raw())
		}
	}
}

func TestAnswersOfProxies(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer string
		want   llm.Response
	}{
		"whole, with everything": {
			`{"type":"message","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"redacted_thinking","data":"d"},{"type":"text","text":"so"},` +
				`{"type":"tool_use","id":"a","name":"f","input":{"x": 1.0}}],"stop_reason":"tool_use","usage":{"input_tokens":5,"cache_read_input_tokens":3,"output_tokens":2}}`,
			llm.Response{
				Text: "so", Reasoning: "hm", Finish: core.FinishToolCalls, ToolCalls: []core.ToolCall{{ID: "a", Name: "f", Arguments: `{"x": 1.0}`}},
				Parts: []core.Part{
					{Type: "reasoning", Text: "hm", Signature: "s", Origin: "anthropic/claude-sonnet-4-5"},
					{Type: "reasoning", Name: "redacted", Signature: "d", Origin: "anthropic/claude-sonnet-4-5"},
				},
				Usage: &core.Usage{InputTokens: 8, CacheReadTokens: 3, OutputTokens: 2},
			},
		},
		"no event names, input at once, end_turn after a call": {
			"data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":{\"x\":1}}}\n\n" +
				"data: {\"type\":\"content_block_stop\",\"index\":0}\n\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n",
			llm.Response{ToolCalls: []core.ToolCall{{ID: "a", Name: "f", Arguments: `{"x":1}`}}, Finish: core.FinishToolCalls},
		},
		"events and blocks of tomorrow": {
			"event: novelty\ndata: {\"type\":\"novelty\"}\n\nevent: x\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"hologram\"}}\n\n" +
				"data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"light_delta\"}}\n\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n" +
				"data: {\"type\":\"content_block_delta\",\"index\":7,\"delta\":{\"type\":\"text_delta\",\"text\":\"hi\"}}\n\ndata: {\"type\":\"content_block_stop\",\"index\":9}\n\n" +
				"data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"paused\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n",
			llm.Response{Text: "hi", Finish: "paused"},
		},
		"the window is full": {
			`{"type":"message","content":[{"type":"text","text":"a"}],"stop_reason":"model_context_window_exceeded"}`,
			llm.Response{Text: "a", Finish: core.FinishLength},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := serve(t, 200, c.answer)
			got, err := call(t, open(t, anthropic.Options{BaseURL: p.URL + "/v1/"}), ask("hi"))
			must.True(t, err == nil && p.Last().Path == "/v1/messages", "call: %v at %s", err, p.Last().Path)
			compare.Equal(t, "response", c.want, got)
		})
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		answer string
		want   llm.ErrorKind
	}{
		"no credit":             {400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing."}}`, llm.KindAuth},
		"billing":               {402, `{"type":"error","error":{"type":"billing_error","message":"pay"}}`, llm.KindAuth},
		"filtered":              {400, `{"type":"error","error":{"type":"invalid_request_error","message":"Output blocked by content filtering policy"}}`, llm.KindContentFilter},
		"quoted":                {400, `{"type":"error","error":{"type":"invalid_request_error","message":"messages: Your credit balance is too low to access the Anthropic API"}}`, llm.KindInvalid},
		"total":                 {400, "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length\"}}", llm.KindContextLength},
		"with a good status":    {200, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, llm.KindOverloaded},
		"in the stream":         {200, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"permission_error\",\"message\":\"no\"}}\n\n", llm.KindAuth},
		"no message":            {200, `{"answer":42}`, llm.KindUnknown},
		"no message_stop":       {200, "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n", llm.KindTruncated},
		"no stop reason":        {200, "data: {\"type\":\"message_stop\"}\n\n", llm.KindTruncated},
		"whole, no stop reason": {200, `{"type":"message","content":[]}`, llm.KindTruncated},
		"nothing":               {200, "", llm.KindTruncated},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := serve(t, c.status, c.answer)
			_, err := call(t, open(t, anthropic.Options{BaseURL: p.URL}), ask("hi"))
			compare.True(t, llm.IsKind(err, c.want), "got %v, want %s", err, c.want)
		})
	}
	p := sent(t, anthropic.Options{}, llm.Request{Messages: []llm.Message{{Role: core.RoleAssistant, Content: "Welcome!"}, {Role: core.RoleUser, Content: "hi"}}})
	compare.Contains(t, "a user's message before the greeting", `"messages":[{"content":[{"text":"[empty]","type":"text"}],"role":"user"},{"content":[{"text":"Welcome!"`, p.raw())
	if _, err := call(t, open(t, anthropic.Options{}), llm.Request{Messages: []llm.Message{{Role: "judge"}}}); !llm.IsKind(err, llm.KindInvalid) {
		t.Errorf("unknown role: got %v, want KindInvalid", err)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]anthropic.Options{
		"no model":     {},
		"no address":   {Model: "m", BaseURL: "localhost"},
		"small budget": {Model: "m", Thinking: 1_000},
	} {
		compare.True(t, compare.ErrorOf(anthropic.New(options)) != nil, "%s: got no error", name)
	}
	want := llm.Info{Name: "claude", Provider: "anthropic", Window: 5}
	got := open(t, anthropic.Options{Name: "claude", Model: "m", Info: llm.Info{Window: 5}}).Info()
	compare.Equal(t, "info", want, got, cmpopts.IgnoreFields(llm.Info{}, "Lacks", "ThoughtOrigin", "Account"))
}
