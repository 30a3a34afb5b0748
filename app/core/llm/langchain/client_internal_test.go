package langchain

import (
	"context"
	"errors"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"bobbin/app/core/llm"
	"bobbin/app/core/llm/providerhttp"
)

// fake is a client of langchaingo.
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

func (f fake) model() *Model {
	return &Model{chat: f, peer: &providerhttp.Peer{Provider: Provider, Timeouts: providerhttp.Timeouts{Headers: -1, Idle: -1}}}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		generate func(ctx context.Context, o llms.CallOptions) (*llms.ContentResponse, error)
		want     llm.ErrorKind
	}{
		{func(context.Context, llms.CallOptions) (*llms.ContentResponse, error) { panic("no parts") }, llm.KindUnknown},
		{func(context.Context, llms.CallOptions) (*llms.ContentResponse, error) { return nil, nil }, llm.KindEmpty},
		// Words that a user may have written do not decide.
		{func(context.Context, llms.CallOptions) (*llms.ContentResponse, error) {
			return nil, errors.New("cannot read order 4290")
		}, llm.KindUnknown},
	} {
		if _, err := llm.Collect(fake{generate: test.generate}.model().Stream(t.Context(), llm.Request{}), nil); !llm.IsKind(err, test.want) {
			t.Errorf("got %v, want %s", err, test.want)
		}
	}
}

// A caller that leaves the loop does not block the client.
func TestLeave(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	m := fake{generate: func(ctx context.Context, o llms.CallOptions) (*llms.ContentResponse, error) {
		defer close(ended)
		for range 10 {
			if err := o.StreamingFunc(ctx, []byte("x")); err != nil {
				return nil, err
			}
		}
		return &llms.ContentResponse{}, nil
	}}.model()
	for _, err := range m.Stream(t.Context(), llm.Request{}) {
		if err != nil {
			t.Error(err)
		}
		break
	}
	<-ended
}
