package anthropic

import (
	"bytes"
	"context"
	"io"
	"iter"
	"net/http"

	"bobbin/app/core/llm"
	"bobbin/app/core/llm/providerhttp"
)

// Model is one model of Anthropic.
type Model struct {
	options Options
	claude  generation
	peer    *providerhttp.Peer
}

// New returns the model that the options describe. Nothing is sent before the
// first Stream. Options that cannot work are refused with core.ErrInvalid.
func New(options Options) (*Model, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	m := &Model{options: options, claude: generationOf(options.Model), peer: &providerhttp.Peer{
		Provider: options.provider(), BaseURL: options.BaseURL, Key: options.APIKey, Timeouts: options.Timeouts,
		Client: providerhttp.NewClient(options.Transport),
	}}
	m.peer.Client.Transport = options.Cloud.transport(m.peer.Client.Transport)
	return m, nil
}

// Info describes the model.
func (m *Model) Info() llm.Info { return m.options.Info }

// Stream sends the request and yields the answer as it arrives. Everything
// happens on the caller's goroutine; when Stream's loop has ended, the request
// has too. Errors are *llm.Error: KindCanceled when ctx ended it (also by its
// deadline), KindTimeout when one of our own limits passed.
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	if req.Compact {
		req = compactionRequest(req)
	}
	return func(yield func(llm.Delta, error) bool) {
		hasLeft := false // the caller left its loop
		emit := func(d llm.Delta) bool {
			hasLeft = !yield(d, nil)
			return !hasLeft
		}
		err := m.callProvider(ctx, req, emit)
		if m.refusedThoughts(req, err) {
			if !emit(llm.Delta{Dropped: m.refusedAll(req)}) {
				return
			}
			err = m.callProvider(ctx, req.WithoutThoughts(), emit)
		}
		if err != nil && !hasLeft {
			yield(llm.Delta{}, err)
		}
	}
}

// callProvider sends the request and emits the answer. Its result is not an error, so that no
// error is a plain nil.
func (m *Model) callProvider(ctx context.Context, req llm.Request, emit func(llm.Delta) bool) *llm.Error {
	if ctx.Err() != nil {
		return llm.CanceledError(ctx, m.options.provider())
	}
	body, err := m.requestBody(req)
	if err != nil {
		return m.peer.Invalid(err)
	}
	failure := m.peer.Do(ctx, func(ctx context.Context) (*http.Request, error) {
		return m.newRequest(ctx, req, body)
	}, func(response *http.Response, body io.Reader) error {
		a := &answer{origin: m.signatureOrigin(), emit: emit, compaction: providerhttp.NewCompaction(m.options.provider(), req), refusal: func(text []byte) *llm.Error {
			return m.peer.Refusal(0, response.Header, text)
		}}
		return a.read(body)
	})
	if refused := req.RefusedToolChanges(failure); refused != nil {
		return refused
	}
	return asCompactionRefusal(req, failure)
}

// newRequest returns the HTTP request with the body.
func (m *Model) newRequest(ctx context.Context, req llm.Request, body []byte) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, m.options.BaseURL+"/"+m.options.Cloud.path(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "text/event-stream")
	request.Header.Set("User-Agent", "bobbin")
	request.Header.Set("Anthropic-Version", "2023-06-01")
	for _, beta := range m.betas(req) {
		request.Header.Add("Anthropic-Beta", beta)
	}
	if key := m.options.APIKey; key != "" && !m.options.isCloud() {
		request.Header.Set("X-Api-Key", key)
	}
	return request, nil
}
