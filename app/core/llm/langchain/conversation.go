package langchain

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"bobbin/app/core/llm"
)

// conversation is one call. It is langchaingo's HTTP client for that call: it edits
// the request, sends it, hands the answer to the caller while it arrives, and
// keeps the outcome. It is used by one goroutine.
type conversation struct {
	model *Model
	req   llm.Request
	yield func(llm.Delta, error) bool
	sent  bool       // Do was called
	left  bool       // the caller left its loop
	err   *llm.Error // how it failed
}

// settled is all that langchaingo gets to read: the answer went past it.
const settled = `{"choices":[{"message":{"role":"assistant"}}]}`

// errSettled tells langchaingo to stop; what really happened is in conversation.err.
var errSettled = errors.New("settled")

// Do sends the request and reads the answer to its end.
func (x *conversation) Do(built *http.Request) (*http.Response, error) {
	x.sent = true
	x.err = x.model.peer.Do(built.Context(), func(ctx context.Context) (*http.Request, error) {
		return x.request(ctx, built)
	}, x.read)
	if x.err != nil {
		return nil, errSettled
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(settled))}, nil
}

// request returns the request that is really sent.
func (x *conversation) request(ctx context.Context, built *http.Request) (*http.Request, error) {
	body, err := io.ReadAll(built.Body)
	if err != nil {
		return nil, err
	}
	body, err = x.edit(body)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, built.URL.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "text/event-stream")
	request.Header.Set("User-Agent", "bobbin")
	if key := x.model.options.APIKey; key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	return request, nil
}

// read reads the answer.
func (x *conversation) read(response *http.Response, body io.Reader) error {
	answer := &answer{emit: x.emit, refusal: func(text []byte) *llm.Error {
		return x.model.peer.Refusal(0, response.Header, text)
	}}
	return answer.read(body)
}

// emit hands a delta to the caller, and reports whether it wants more.
func (x *conversation) emit(d llm.Delta) bool {
	x.left = !x.yield(d, nil)
	return !x.left
}
