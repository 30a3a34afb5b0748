package langchain_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"bobbin/app/core/llm"
	"bobbin/app/core/llm/langchain"
)

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
		choice llms.ContentChoice
		want   string
	}{
		{
			llms.ContentChoice{Content: "a", StopReason: "stop", GenerationInfo: map[string]any{"usage": map[string]any{"prompt_tokens": 5, "completion_tokens": 2}}},
			"a stop {5 2 0 0 0}",
		},
		{llms.ContentChoice{Content: "a", StopReason: "model_length"}, "a length <nil>"},
		{llms.ContentChoice{Content: "a", GenerationInfo: map[string]any{"PromptTokens": 5, "CompletionTokens": 50}}, "a length {5 50 0 0 0}"},
		{llms.ContentChoice{Content: "a", StopReason: "error"}, "a error <nil>"},
	} {
		m := langchain.FromModel(fake{generate: func(context.Context, llms.CallOptions) (*llms.ContentResponse, error) {
			return &llms.ContentResponse{Choices: []*llms.ContentChoice{&test.choice}}, nil
		}}, llm.Info{})
		res, _, err := collect(t.Context(), m, llm.Request{MaxOutputTokens: 50})
		if err != nil {
			t.Fatal(err)
		}
		usage := "<nil>"
		if res.Usage != nil {
			usage = fmt.Sprint(*res.Usage)
		}
		if got := fmt.Sprint(res.Text, " ", res.Finish, " ", usage); got != test.want {
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
