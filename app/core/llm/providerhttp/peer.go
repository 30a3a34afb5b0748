package providerhttp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/html/charset"

	"bobbin/app/core/llm"
)

// The time limits that a zero Timeouts means.
const (
	DefaultHeadersTimeout = 60 * time.Second
	DefaultIdleTimeout    = 120 * time.Second
)

// Timeouts are our own limits; one that passes gives KindTimeout. 0 = the
// default, negative = no limit.
type Timeouts struct {
	Headers time.Duration // from the request to the answer's headers, and from these to its first byte if that is more than Idle
	Idle    time.Duration // between two pieces of the answer
}

const (
	// maxErrorBody is how much of a failed answer is read, in bytes.
	maxErrorBody = 64 << 10
	// drainTime is how long a finished answer may take to end, so that its
	// connection can be used again.
	drainTime = 100 * time.Millisecond
)

// Peer is a provider as HTTP reaches it. Safe for concurrent use.
type Peer struct {
	Provider string // for errors
	BaseURL  string // for errors
	Key      string // removed from every error; empty = none
	Timeouts Timeouts
	Client   *http.Client // see NewClient
	// Authorize adds the authorization to a request, which nothing changes any more: a signature holds for the bytes
	// that are sent. It may be called by several goroutines. An *llm.Error ends the call as it is; other errors count
	// as a provider that was not reached. nil = the headers have it.
	Authorize func(*http.Request) error
}

// NewClient returns a client that follows no redirects: one would take the key to
// another host. A nil transport is one of its own that honors the proxy variables
// of the environment, with idle connections for many parallel calls to one host.
func NewClient(transport http.RoundTripper) *http.Client {
	if transport == nil {
		own := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // nobody replaces it
		own.MaxIdleConnsPerHost = 32
		transport = own
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Account returns a short hash that differs between accounts of a provider, as far as address and
// key tell; nobody can find the key from it.
func Account(baseURL, key string) string {
	sum := sha256.Sum256([]byte("account\x00" + baseURL + "\x00" + key))
	return hex.EncodeToString(sum[:4])
}

// ErrLeft is returned by the reader of an answer when its caller has left the loop.
var ErrLeft = errors.New("the caller left")

// ErrTruncated is the error of an answer that ended without a finish reason.
var ErrTruncated = errors.New("it ended without a finish reason")

// Do sends the request that build returns and calls read for an answer with a 2xx status.
// ErrLeft is not a failure. It returns nil or the cause of the failure: canceled by ctx, a
// limit of ours, a refusal, a provider that was not reached, an answer that broke off.
func (p *Peer) Do(ctx context.Context, build func(context.Context) (*http.Request, error), read func(*http.Response, io.Reader) error) *llm.Error {
	limited, watch := newWatchdog(ctx)
	defer watch.stop()
	request, err := build(limited)
	if err != nil {
		return p.Invalid(err)
	}
	response, body, err := p.answerTo(request, watch)
	if err != nil {
		return p.toError(ctx, limited, err)
	}
	defer response.Body.Close()
	if err = read(response, body); errors.Is(err, ErrLeft) {
		return nil
	}
	if err != nil {
		return p.toError(ctx, limited, err)
	}
	watch.arm(drainTime, "no end")
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxErrorBody)) // only for the connection's sake
	return nil
}

// answerTo sends the request and returns the answer, with its body in UTF-8, whatever encoding its header
// declares, within the time limits. An answer without a 2xx status is an error.
func (p *Peer) answerTo(request *http.Request, watch *watchdog) (*http.Response, io.Reader, error) {
	watch.arm(p.Timeouts.Headers, "no answer")
	var response *http.Response
	var err error
	if p.Authorize != nil {
		err = p.Authorize(request)
	}
	if err == nil {
		response, err = p.Client.Do(request)
	}
	watch.disarm()
	if e := llm.AsError(err); e != nil {
		return nil, nil, e
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok { // it only adds the URL
		err = wrapped.Err
	}
	if err != nil {
		return nil, nil, &unreachedError{err: err}
	}
	// Some servers send the headers before they read the prompt.
	first := max(p.Timeouts.Headers, p.Timeouts.Idle)
	if p.Timeouts.Headers < 0 || p.Timeouts.Idle < 0 {
		first = -1
	}
	var body io.Reader = &watchedBody{body: response.Body, watch: watch, limit: first, idle: p.Timeouts.Idle}
	_, params, _ := mime.ParseMediaType(response.Header.Get("Content-Type")) // without one, or with a wrong one, it is UTF-8
	if encoding, name := charset.Lookup(params["charset"]); encoding != nil && name != "utf-8" {
		body = encoding.NewDecoder().Reader(body)
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		defer response.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(body, maxErrorBody)) // of a body that breaks off, what came is used
		return nil, nil, p.Refusal(response.StatusCode, response.Header, text)
	}
	return response, body, nil
}

// Invalid returns the error of a request that could not be built.
func (p *Peer) Invalid(err error) *llm.Error {
	return &llm.Error{Kind: llm.KindInvalid, Provider: p.Provider, Message: "the request cannot be built: " + err.Error(), Err: err}
}

// unreachedError is the error of a request that got no answer.
type unreachedError struct{ err error }

func (e *unreachedError) Error() string { return e.err.Error() }

// toError classifies err, which ended the request.
func (p *Peer) toError(parent, ctx context.Context, err error) *llm.Error {
	if e := llm.AsError(err); e != nil {
		return e
	}
	if parent.Err() != nil {
		return llm.CanceledError(parent, p.Provider)
	}
	if limit, ok := errors.AsType[*limitError](context.Cause(ctx)); ok {
		return &llm.Error{Kind: llm.KindTimeout, Provider: p.Provider, Message: limit.Error(), Err: limit}
	}
	if unreached, ok := errors.AsType[*unreachedError](err); ok {
		return p.Unreached(unreached.err)
	}
	if tooLong, ok := errors.AsType[*SizeError](err); ok {
		return &llm.Error{Kind: llm.KindUnknown, Provider: p.Provider, Message: tooLong.Error(), Err: tooLong}
	}
	return &llm.Error{Kind: llm.KindTruncated, Provider: p.Provider, Message: "the answer broke off: " + p.Scrub(err.Error()), Err: err}
}

// Unreached returns the error of a request that got no answer.
func (p *Peer) Unreached(err error) *llm.Error {
	message := fmt.Sprintf("%s was not reached: %s", llm.Redacted(p.BaseURL), err)
	return &llm.Error{Kind: llm.KindNetwork, Provider: p.Provider, Message: p.Scrub(message), Err: err}
}

// Scrub removes the key from a text.
func (p *Peer) Scrub(text string) string {
	if p.Key == "" {
		return text
	}
	return strings.ReplaceAll(text, p.Key, "***")
}

// limitError is the error of one of our own time limits.
type limitError struct {
	what  string
	limit time.Duration
}

func (e *limitError) Error() string { return fmt.Sprintf("%s within %v", e.what, e.limit) }

// watchdog cancels a context when nothing happens for too long.
type watchdog struct {
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

func newWatchdog(parent context.Context) (context.Context, *watchdog) {
	ctx, cancel := context.WithCancelCause(parent)
	return ctx, &watchdog{cancel: cancel}
}

// arm starts the timer, unless the limit is negative.
func (w *watchdog) arm(limit time.Duration, what string) {
	if limit < 0 {
		return
	}
	w.timer = time.AfterFunc(limit, func() { w.cancel(&limitError{what: what, limit: limit}) })
}

// disarm stops the timer.
func (w *watchdog) disarm() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// stop ends the request.
func (w *watchdog) stop() {
	w.disarm()
	w.cancel(nil)
}

// watchedBody runs the timer only while it waits for the provider, so that a slow reader
// of the answer does not count.
type watchedBody struct {
	body  io.Reader
	watch *watchdog
	limit time.Duration // of the next read
	idle  time.Duration // of those after the first
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.watch.arm(b.limit, "nothing more came")
	defer b.watch.disarm()
	b.limit = b.idle
	return b.body.Read(p)
}
