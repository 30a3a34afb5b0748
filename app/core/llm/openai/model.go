package openai

import (
	"bytes"
	"context"
	"io"
	"iter"
	"net/http"

	"bobbin/app/core/llm"
	"bobbin/app/core/llm/providerhttp"
)

// Model is one model of one provider of the OpenAI dialect.
type Model struct {
	options Options
	dialect dialect
	peer    *providerhttp.Peer
}

// New returns the model that the options describe. Nothing is sent before the
// first Stream. Options that cannot work are refused with core.ErrInvalid.
func New(options Options) (*Model, error) {
	options, d, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Model{options: options, dialect: d, peer: &providerhttp.Peer{
		Provider: options.Provider, BaseURL: options.BaseURL, Key: options.APIKey, Timeouts: options.Timeouts,
		Client: providerhttp.NewClient(options.Transport),
	}}, nil
}

// Info describes the model.
func (m *Model) Info() llm.Info { return m.options.Info }

// Stream sends the request and yields the answer as it arrives. Everything
// happens on the caller's goroutine; when Stream's loop has ended, the request
// has too. Errors are *llm.Error: KindCanceled when ctx ended it (also by its
// deadline), KindTimeout when one of our own limits passed.
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		hasLeft := false // the caller left its loop
		emit := func(d llm.Delta) bool {
			hasLeft = !yield(d, nil)
			return !hasLeft
		}
		if err := m.callProvider(ctx, req, emit); err != nil && !hasLeft {
			yield(llm.Delta{}, err)
		}
	}
}

// callProvider sends the request and emits the answer. Its result is not an error, so that no
// error is a plain nil.
func (m *Model) callProvider(ctx context.Context, req llm.Request, emit func(llm.Delta) bool) *llm.Error {
	if ctx.Err() != nil {
		return llm.CanceledError(ctx, m.options.Provider)
	}
	body, err := m.requestBody(req)
	if err != nil {
		return m.peer.Invalid(err)
	}
	return m.peer.Do(ctx, func(ctx context.Context) (*http.Request, error) {
		return m.newRequest(ctx, "/chat/completions", "text/event-stream", body)
	}, func(response *http.Response, body io.Reader) error {
		answer := &answer{emit: emit, refusal: func(text []byte) *llm.Error {
			return m.peer.Refusal(0, response.Header, text)
		}}
		return answer.read(body)
	})
}

// newRequest returns a request that sends the body to the path.
func (m *Model) newRequest(ctx context.Context, path, accept string, body []byte) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, m.options.BaseURL+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", accept)
	request.Header.Set("User-Agent", "bobbin")
	if key := m.options.APIKey; key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	return request, nil
}
