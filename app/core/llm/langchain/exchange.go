package langchain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"bobbin/app/core/llm"
)

const (
	// maxErrorBody is how much of a failed answer is read, in bytes.
	maxErrorBody = 64 << 10
	// drainTime is how long a finished answer may take to end, so that its
	// connection can be used again.
	drainTime = 100 * time.Millisecond
)

// exchange is one call. It is langchaingo's HTTP client for that call: it edits
// the request, sends it, hands the answer to the caller while it arrives, and
// keeps the outcome. It is used by one goroutine.
type exchange struct {
	model *Model
	req   llm.Request
	yield func(llm.Delta, error) bool
	sent  bool       // Do was called
	left  bool       // the caller left its loop
	err   *llm.Error // how it failed
}

// settled is all that langchaingo gets to read: the answer went past it.
const settled = `{"choices":[{"message":{"role":"assistant"}}]}`

// errSettled tells langchaingo to stop; what really happened is in exchange.err.
var errSettled = errors.New("settled")

// Do sends the request and reads the answer to its end.
func (x *exchange) Do(built *http.Request) (*http.Response, error) {
	x.sent = true
	parent := built.Context()
	ctx, watch := newWatchdog(parent)
	defer watch.stop()
	request, err := x.request(ctx, built)
	if err != nil {
		x.err = x.model.invalid(err)
		return nil, errSettled
	}
	if err := x.talk(request, watch); err != nil {
		x.err = x.failure(parent, ctx, err)
		return nil, errSettled
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(settled))}, nil
}

// request returns the request that is really sent.
func (x *exchange) request(ctx context.Context, built *http.Request) (*http.Request, error) {
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

// talk sends the request and reads the answer. A caller that leaves ends it
// without an error.
func (x *exchange) talk(request *http.Request, watch *watchdog) error {
	timeouts := x.model.options.Timeouts
	watch.arm(timeouts.Headers, "no answer")
	response, err := x.model.client.Do(request)
	watch.disarm()
	if err != nil {
		return &unreachedError{err: inner(err)}
	}
	defer response.Body.Close()
	body := &watchedBody{body: response.Body, watch: watch, idle: timeouts.Idle}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		// Of a body that breaks off, what came is used.
		text, _ := io.ReadAll(io.LimitReader(body, maxErrorBody))
		return x.model.refusal(response.StatusCode, response.Header, text)
	}
	answer := &answer{emit: x.emit, refusal: func(text []byte) *llm.Error {
		return x.model.refusal(0, response.Header, text)
	}}
	err = answer.read(body)
	if errors.Is(err, errLeft) {
		return nil
	}
	if err == nil {
		watch.arm(drainTime, "no end")
		_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxErrorBody)) // only for the connection's sake
	}
	return err
}

// emit hands a delta to the caller, and reports whether it wants more.
func (x *exchange) emit(d llm.Delta) bool {
	x.left = !x.yield(d, nil)
	return !x.left
}

// unreachedError says that no answer came at all.
type unreachedError struct{ err error }

func (e *unreachedError) Error() string { return e.err.Error() }

// failure says what err, which ended the exchange, really means.
func (x *exchange) failure(parent, ctx context.Context, err error) *llm.Error {
	provider := x.model.options.Provider
	if e := llm.AsError(err); e != nil {
		return e
	}
	if parent.Err() != nil {
		return llm.CanceledError(parent, provider)
	}
	var limit *limitError
	if errors.As(context.Cause(ctx), &limit) {
		return &llm.Error{Kind: llm.KindTimeout, Provider: provider, Message: limit.Error(), Err: limit}
	}
	var unreached *unreachedError
	if errors.As(err, &unreached) {
		message := fmt.Sprintf("%s was not reached: %s", redacted(x.model.options.BaseURL), unreached)
		return &llm.Error{Kind: llm.KindNetwork, Provider: provider, Message: x.model.scrub(message), Err: unreached.err}
	}
	var tooLong *sizeError
	if errors.As(err, &tooLong) {
		return &llm.Error{Kind: llm.KindUnknown, Provider: provider, Message: tooLong.Error(), Err: tooLong}
	}
	return &llm.Error{Kind: llm.KindTruncated, Provider: provider, Message: "the answer broke off: " + x.model.scrub(err.Error()), Err: err}
}

// inner takes away net/http's wrapping, which names the URL and nothing else.
func inner(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// scrub takes the key out of a text, wherever it came from.
func (m *Model) scrub(text string) string {
	if m.options.APIKey == "" {
		return text
	}
	return strings.ReplaceAll(text, m.options.APIKey, "***")
}

// limitError says which of our own time limits passed.
type limitError struct {
	what  string
	limit time.Duration
}

func (e *limitError) Error() string { return fmt.Sprintf("%s within %v", e.what, e.limit) }

// Timeout makes it a net.Error, as other time limits are.
func (e *limitError) Timeout() bool { return true }

// Temporary is part of net.Error.
func (e *limitError) Temporary() bool { return true }

var _ net.Error = (*limitError)(nil)

// watchdog cancels a context when nothing happens for too long.
type watchdog struct {
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

func newWatchdog(parent context.Context) (context.Context, *watchdog) {
	ctx, cancel := context.WithCancelCause(parent)
	return ctx, &watchdog{cancel: cancel}
}

// arm starts the clock. A limit below zero is none.
func (w *watchdog) arm(limit time.Duration, what string) {
	if limit < 0 {
		return
	}
	w.timer = time.AfterFunc(limit, func() { w.cancel(&limitError{what: what, limit: limit}) })
}

// disarm stops the clock.
func (w *watchdog) disarm() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// stop ends the request, whatever it does.
func (w *watchdog) stop() {
	w.disarm()
	w.cancel(nil)
}

// watchedBody lets the clock run only while it waits for the provider, so that a
// slow reader of the answer is not blamed on the provider.
type watchedBody struct {
	body  io.Reader
	watch *watchdog
	idle  time.Duration
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.watch.arm(b.idle, "nothing more came")
	defer b.watch.disarm()
	return b.body.Read(p)
}
