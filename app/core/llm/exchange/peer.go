package exchange

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"bobbin/app/core"
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
	Headers time.Duration // from the request to the answer's headers
	Idle    time.Duration // between two pieces of the answer
}

// WithDefaults returns the limits with the defaults where none are set.
func (t Timeouts) WithDefaults() Timeouts {
	if t.Headers == 0 {
		t.Headers = DefaultHeadersTimeout
	}
	if t.Idle == 0 {
		t.Idle = DefaultIdleTimeout
	}
	return t
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
	Key      string // taken out of every error; empty = none
	Timeouts Timeouts
	Client   *http.Client // see NewClient
}

// NewClient returns a client that follows no redirects: one would take the key to
// another host. A nil transport is one of its own that honors the proxy variables
// of the environment, with room for many calls at once to one host.
func NewClient(transport http.RoundTripper) *http.Client {
	if transport == nil {
		transport = newTransport()
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func newTransport() http.RoundTripper {
	standard, ok := http.DefaultTransport.(*http.Transport)
	if !ok { // replaced by somebody who knows why
		return http.DefaultTransport
	}
	transport := standard.Clone()
	transport.MaxIdleConnsPerHost = 32
	return transport
}

// ErrLeft is what a reader of an answer returns when its caller wants no more.
var ErrLeft = errors.New("the caller left")

// ErrTruncated says that an answer ended without saying so.
var ErrTruncated = errors.New("it ended without a finish reason")

// Do sends the request that build returns and lets read read the answer, whose
// status was a good one; a caller that left (ErrLeft) is no error. It returns nil,
// or what the failure really was: canceled by ctx, a limit of ours, a refusal, a
// provider that was not reached, an answer that broke off.
func (p *Peer) Do(ctx context.Context, build func(context.Context) (*http.Request, error), read func(*http.Response, io.Reader) error) *llm.Error {
	limited, watch := newWatchdog(ctx)
	defer watch.stop()
	request, err := build(limited)
	if err != nil {
		return p.Invalid(err)
	}
	if err := p.talk(request, watch, read); err != nil {
		return p.failure(ctx, limited, err)
	}
	return nil
}

// talk sends the request and reads the answer.
func (p *Peer) talk(request *http.Request, watch *watchdog, read func(*http.Response, io.Reader) error) error {
	watch.arm(p.Timeouts.Headers, "no answer")
	response, err := p.Client.Do(request)
	watch.disarm()
	if err != nil {
		return &unreachedError{err: inner(err)}
	}
	defer response.Body.Close()
	body := &watchedBody{body: response.Body, watch: watch, idle: p.Timeouts.Idle}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		// Of a body that breaks off, what came is used.
		text, _ := io.ReadAll(io.LimitReader(body, maxErrorBody))
		return p.Refusal(response.StatusCode, response.Header, text)
	}
	err = read(response, body)
	if errors.Is(err, ErrLeft) {
		return nil
	}
	if err == nil {
		watch.arm(drainTime, "no end")
		_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxErrorBody)) // only for the connection's sake
	}
	return err
}

// Invalid is the error of a request that could not even be built.
func (p *Peer) Invalid(err error) *llm.Error {
	return &llm.Error{Kind: llm.KindInvalid, Provider: p.Provider, Message: "the request cannot be built: " + err.Error(), Err: err}
}

// unreachedError says that no answer came at all.
type unreachedError struct{ err error }

func (e *unreachedError) Error() string { return e.err.Error() }

// failure says what err, which ended the exchange, really means.
func (p *Peer) failure(parent, ctx context.Context, err error) *llm.Error {
	if e := llm.AsError(err); e != nil {
		return e
	}
	if parent.Err() != nil {
		return llm.CanceledError(parent, p.Provider)
	}
	var limit *limitError
	if errors.As(context.Cause(ctx), &limit) {
		return &llm.Error{Kind: llm.KindTimeout, Provider: p.Provider, Message: limit.Error(), Err: limit}
	}
	var unreached *unreachedError
	if errors.As(err, &unreached) {
		message := fmt.Sprintf("%s was not reached: %s", Redacted(p.BaseURL), unreached)
		return &llm.Error{Kind: llm.KindNetwork, Provider: p.Provider, Message: p.Scrub(message), Err: unreached.err}
	}
	var tooLong *SizeError
	if errors.As(err, &tooLong) {
		return &llm.Error{Kind: llm.KindUnknown, Provider: p.Provider, Message: tooLong.Error(), Err: tooLong}
	}
	return &llm.Error{Kind: llm.KindTruncated, Provider: p.Provider, Message: "the answer broke off: " + p.Scrub(err.Error()), Err: err}
}

// inner takes away net/http's wrapping, which names the URL and nothing else.
func inner(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// Scrub takes the key out of a text, wherever it came from.
func (p *Peer) Scrub(text string) string {
	if p.Key == "" {
		return text
	}
	return strings.ReplaceAll(text, p.Key, "***")
}

// CheckURL refuses a base URL that is no address, with core.ErrInvalid; name is
// the model's.
func CheckURL(name, base string) error {
	if base == "" {
		return core.Errorf(core.ErrInvalid, "model %s needs a base_url, such as http://127.0.0.1:8000/v1", name)
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return core.Errorf(core.ErrInvalid, "model %s: the base_url is not an http or https address", name)
	}
	return nil
}

// Redacted returns the address without what may be secret in it.
func Redacted(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "?"
	}
	return u.Scheme + "://" + u.Host + u.Path
}
