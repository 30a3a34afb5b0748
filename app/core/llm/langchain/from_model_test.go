package langchain_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/openai"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/langchain"
)

// Tool calls go out and come back with any model of langchaingo that takes tools, here its
// OpenAI client.
func TestToolCallRoundTrip(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		write(w, `{"choices":[{"message":{"role":"assistant","content":"Let me look.","tool_calls":[{"id":"call_1","type":"function","function":{"name":"clock","arguments":"{\"zone\":\"UTC\"}"}},`+
			`{"id":"call_2","type":"function","function":{"name":"clock","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":2}}}`)
	})
	chat, err := openai.New(openai.WithBaseURL(server.URL), openai.WithToken("key"), openai.WithModel("m"))
	if err != nil {
		t.Fatal(err)
	}
	m := langchain.FromModel(chat, llm.Info{Name: "mine"})
	req := llm.Request{Tools: []llm.ToolSpec{{Name: "clock", Description: "the time"}}, Messages: []llm.Message{
		{Role: core.RoleUser, Content: "What time is it?"},
		{Role: core.RoleAssistant, ToolCalls: []core.ToolCall{{ID: "call_0", Name: "clock", Arguments: `{"zone":"CET"}`}}},
		{Role: core.RoleTool, ToolCallID: "call_0", ToolName: "clock", Content: "noon"},
	}}
	res, _, err := collect(timeLimit(t), m, req)
	if err != nil {
		t.Fatal(err)
	}
	want := []core.ToolCall{{ID: "call_1", Name: "clock", Arguments: `{"zone":"UTC"}`}, {ID: "call_2", Name: "clock", Arguments: "{}"}}
	if fmt.Sprint(res.ToolCalls) != fmt.Sprint(want) || res.Finish != core.FinishToolCalls || res.Text != "Let me look." {
		t.Errorf("got %q, %v, finish %q", res.Text, res.ToolCalls, res.Finish)
	}
	if res.Usage == nil || *res.Usage != (core.Usage{InputTokens: 9, OutputTokens: 4, CacheReadTokens: 2}) {
		t.Errorf("got usage %+v", res.Usage)
	}
	body := server.last(t).body
	if got := fmt.Sprint(body["messages"]); !strings.Contains(got, "tool_call_id:call_0") || !strings.Contains(got, `arguments:{"zone":"CET"}`) {
		t.Errorf("got the messages %s", got)
	}
	if got := fmt.Sprint(body["tools"]); !strings.Contains(got, "name:clock") || body["stream"] != nil {
		t.Errorf("got the tools %s, stream %v", got, body["stream"])
	}
}

// A tool choice goes out as the client of langchaingo takes it; what it has no option for is
// lacked.
func TestToolChoice(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		write(w, `{"choices":[{"message":{"role":"assistant","content":"Hello."},"finish_reason":"stop"}]}`)
	})
	chat, err := openai.New(openai.WithBaseURL(server.URL), openai.WithToken("key"), openai.WithModel("m"))
	if err != nil {
		t.Fatal(err)
	}
	for choice, want := range map[core.ToolChoice]string{
		"": "<nil>", core.ToolChoiceNone: "none", core.ToolChoiceRequired: "required", "clock": "map[function:map[name:clock] type:function]",
	} {
		m := langchain.FromModel(chat, llm.Info{Name: "mine"})
		req := llm.Request{Tools: []llm.ToolSpec{{Name: "clock"}}, ToolChoice: choice, Messages: []llm.Message{{Role: core.RoleUser, Content: "Hello"}}}
		if _, _, err := collect(timeLimit(t), m, req); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(server.last(t).body["tool_choice"]); got != want {
			t.Errorf("%q: got the tool choice %s, want %s", choice, got, want)
		}
		lacking := m.Info().LackingForRun(core.Agent{Tools: []string{"clock"}}, core.RunOptions{ToolChoice: choice, ParallelToolCalls: new(false)})
		if len(lacking) != 1 || lacking[0] != llm.ParallelTools {
			t.Errorf("%q: the model lacks %v, want %s", choice, lacking, llm.ParallelTools)
		}
	}
}

// fake is a model of langchaingo.
type fake struct {
	llms.Model

	generate func(ctx context.Context, o llms.CallOptions) (*llms.ContentResponse, error)
}

func (f fake) GenerateContent(ctx context.Context, _ []llms.MessageContent, options ...llms.CallOption) (*llms.ContentResponse, error) {
	var o llms.CallOptions
	for _, set := range options {
		set(&o)
	}
	return f.generate(ctx, o)
}

func TestFinishAndUsage(t *testing.T) {
	for _, test := range []struct {
		choices []*llms.ContentChoice
		want    string
	}{
		{
			[]*llms.ContentChoice{{Content: "a", StopReason: "end_turn", GenerationInfo: map[string]any{"InputTokens": 5, "OutputTokens": 2, "CacheReadInputTokens": 3}}},
			"a stop {8 2 0 3 0} []",
		},
		{
			[]*llms.ContentChoice{{Content: "a", StopReason: "FinishReasonMaxTokens", GenerationInfo: map[string]any{"input_tokens": int32(5), "output_tokens": int32(2)}}},
			"a length {5 2 0 0 0} []",
		},
		{
			[]*llms.ContentChoice{{Content: "a", GenerationInfo: map[string]any{"PromptTokens": 5, "CompletionTokens": 50}}},
			"a length {5 50 0 0 0} []",
		},
		{
			[]*llms.ContentChoice{{StopReason: "tool_use", Content: "a"}, {StopReason: "tool_use", ToolCalls: []llms.ToolCall{{ID: "x", FunctionCall: &llms.FunctionCall{Name: "f", Arguments: "{}"}}}}},
			"a tool_calls <nil> [{x f {} }]",
		},
	} {
		m := langchain.FromModel(fake{generate: func(context.Context, llms.CallOptions) (*llms.ContentResponse, error) {
			return &llms.ContentResponse{Choices: test.choices}, nil
		}}, llm.Info{})
		res, _, err := collect(t.Context(), m, llm.Request{MaxOutputTokens: 50})
		if err != nil {
			t.Fatal(err)
		}
		usage := "<nil>"
		if res.Usage != nil {
			usage = fmt.Sprint(*res.Usage)
		}
		if got := fmt.Sprint(res.Text, " ", res.Finish, " ", usage, " ", res.ToolCalls); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
}

func TestFailures(t *testing.T) {
	for _, test := range []struct {
		generate func(ctx context.Context, o llms.CallOptions) (*llms.ContentResponse, error)
		want     llm.ErrorKind
	}{
		{func(context.Context, llms.CallOptions) (*llms.ContentResponse, error) { panic("no parts") }, llm.KindUnknown},
		{func(context.Context, llms.CallOptions) (*llms.ContentResponse, error) { return nil, nil }, llm.KindEmpty},
		{func(context.Context, llms.CallOptions) (*llms.ContentResponse, error) {
			return nil, errors.New("API returned unexpected status code: 429: slow down")
		}, llm.KindRateLimit},
		{func(context.Context, llms.CallOptions) (*llms.ContentResponse, error) {
			return nil, errors.New("anthropic: the prompt is too long: 210000 tokens > 200000 maximum")
		}, llm.KindContextLength},
		// Words that a user may have written do not decide.
		{func(context.Context, llms.CallOptions) (*llms.ContentResponse, error) {
			return nil, errors.New("cannot read order 4290")
		}, llm.KindUnknown},
	} {
		_, _, err := collect(t.Context(), langchain.FromModel(fake{generate: test.generate}, llm.Info{}), hello())
		if !llm.IsKind(err, test.want) {
			t.Errorf("got %v, want %s", err, test.want)
		}
	}
}

// A caller that leaves the loop does not block the provider.
func TestLeave(t *testing.T) {
	ended := make(chan struct{})
	m := langchain.FromModel(fake{generate: func(ctx context.Context, o llms.CallOptions) (*llms.ContentResponse, error) {
		defer close(ended)
		for range 10 {
			if err := o.StreamingFunc(ctx, []byte("x")); err != nil {
				return nil, err
			}
		}
		return &llms.ContentResponse{}, nil
	}}, llm.Info{})
	for _, err := range m.Stream(t.Context(), hello()) {
		if err != nil {
			t.Error(err)
		}
		break
	}
	select {
	case <-ended:
	case <-timeLimit(t).Done():
		t.Error("the provider is blocked")
	}
}
