package langchain

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"bobbin/app/core/llm"
	"bobbin/app/core/llm/providerhttp"
)

// failureOf returns why the call failed; nil = it did not.
func (c *call) failureOf(ctx context.Context, out outcome) error {
	m := c.model
	switch {
	case ctx.Err() != nil:
		return llm.CanceledError(ctx, m.info.Provider)
	case out.err != nil:
		return m.classifyError(out.err)
	case c.broken.Load() != nil:
		return m.classifyError(*c.broken.Load())
	case out.response == nil || len(out.response.Choices) == 0:
		return &llm.Error{Kind: llm.KindEmpty, Provider: m.info.Provider, Message: "the answer is empty"}
	}
	if last := out.response.Choices[len(out.response.Choices)-1]; m.traits.reportsEnd && last.StopReason == "" && usageOf(last.GenerationInfo) == nil {
		return &llm.Error{Kind: llm.KindTruncated, Provider: m.info.Provider, Message: providerhttp.ErrTruncated.Error(), Err: providerhttp.ErrTruncated}
	}
	return nil
}

// statusText finds the HTTP status at the beginning of an error's text.
var statusText = regexp.MustCompile(`(?i)^.{0,80}?\b(?:http error|status(?: code)?|api error)[:= (]*([45]\d\d)\b[:,) ]*(?:body: *)?`)

// classifyError returns the error of a provider as an *llm.Error. An error that has lost its type
// is classified by the status in its text, and by its words.
func (m *Model) classifyError(err error) *llm.Error {
	if e := llm.AsError(err); e != nil {
		return e
	}
	var unreached *url.Error
	switch {
	case errors.As(err, &unreached):
		return m.peer.Unreached(unreached.Err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &llm.Error{Kind: llm.KindTruncated, Provider: m.info.Provider, Message: m.peer.Scrub(err.Error()), Err: err}
	}
	text, status := err.Error(), 0
	if found := statusText.FindStringSubmatch(text); found != nil {
		status, _ = strconv.Atoi(found[1]) // three digits
		text = strings.TrimPrefix(text, found[0])
	}
	return m.peer.Refusal(status, nil, []byte(text))
}

// maxErrorBody is how much of a failed answer is read, in bytes.
const maxErrorBody = 64 << 10

// transport turns error statuses into *llm.Error, which langchaingo would flatten to text
// or overlook, and bounds answers.
type transport struct {
	peer *providerhttp.Peer
	next http.RoundTripper
}

// RoundTrip sends the request.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err != nil {
		return nil, t.peer.Unreached(err)
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		defer response.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(providerhttp.Decoded(response.Header, response.Body), maxErrorBody)) // what came is used
		return nil, t.peer.Refusal(response.StatusCode, response.Header, text)
	}
	c, _ := request.Context().Value(callKey{}).(*call)
	response.Body = &watchedBody{Reader: providerhttp.Decoded(response.Header, response.Body), Closer: response.Body, call: c, peer: t.peer}
	return response, nil
}

// watchedBody notes why an answer could not be read to its end, as not every client
// reports it.
type watchedBody struct {
	io.Reader
	io.Closer

	call *call
	peer *providerhttp.Peer
	read int
}

// Read reads the next piece.
func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.read += n
	if b.read > providerhttp.MaxAnswer {
		err = b.peer.TooLarge()
	}
	if err != nil && !errors.Is(err, io.EOF) && b.call != nil {
		b.call.broken.Store(&err)
	}
	return n, err
}
