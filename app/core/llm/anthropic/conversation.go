package anthropic

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	"bobbin/app/core/llm"
	"bobbin/app/core/llm/providerhttp"
)

// conversation is one call. It is the SDK's HTTP client for that call: it sends
// the request, hands the answer to the caller while it arrives, and keeps the
// outcome. It is used by one goroutine.
type conversation struct {
	model      *Model
	raw        rawArguments
	yield      func(llm.Delta, error) bool
	compaction *providerhttp.Compaction // reads the answer; nil = it is to be no compaction
	sent       bool                     // Do was called
	left       bool                     // the caller left its loop
	err        *llm.Error               // how it failed
}

// errSettled makes the SDK stop; the outcome is in conversation.err.
var errSettled = errors.New("settled")

// Do sends the request and reads the answer to its end. The SDK gets to see an
// empty one.
func (x *conversation) Do(built *http.Request) (*http.Response, error) {
	x.sent = true
	x.err = x.model.peer.Do(built.Context(), func(ctx context.Context) (*http.Request, error) {
		return x.newRequest(ctx, built)
	}, x.read)
	if x.err != nil {
		return nil, errSettled
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: built}, nil
}

// newRequest returns the request that is really sent.
func (x *conversation) newRequest(ctx context.Context, built *http.Request) (*http.Request, error) {
	body, err := io.ReadAll(built.Body)
	if err != nil {
		return nil, err
	}
	body = x.raw.insertInto(body)
	request := built.Clone(ctx)
	request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	request.Header.Set("Accept", "text/event-stream")
	return request, nil
}

// read reads the answer.
func (x *conversation) read(response *http.Response, body io.Reader) error {
	a := &answer{
		origin: x.model.signatureOrigin(),
		emit: func(d llm.Delta) bool {
			x.left = !x.yield(d, nil)
			return !x.left
		},
		compaction: x.compaction,
		refusal:    func(text []byte) *llm.Error { return x.model.peer.Refusal(0, response.Header, text) },
	}
	return a.read(body)
}
