package providerhttp

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"bobbin/app/core/llm"
)

// Exchange is the transport of a library for one call. It keeps why the call failed, as libraries
// flatten that to text or overlook it.
type Exchange struct {
	Peer    *Peer
	Streams bool       // the answer is handed on as it comes; else once it is whole and reports no error
	Err     *llm.Error // nil = nothing has failed so far
}

// RoundTrip sends the request. A streamed answer ends after MaxAnswer bytes.
func (x *Exchange) RoundTrip(built *http.Request) (*http.Response, error) {
	ctx, watch := newWatchdog(built.Context())
	fail := func(err error) error {
		x.Err = x.Peer.toError(built.Context(), ctx, err)
		return x.Err
	}
	request := built.Clone(ctx)
	request.Header.Set("User-Agent", "bobbin")
	if x.Peer.Key == "" {
		request.Header.Del("Authorization")
	}
	response, body, err := x.Peer.answerTo(request, watch)
	if err != nil {
		defer watch.stop()
		return nil, fail(err)
	}
	exchanged := &exchangedBody{Reader: io.LimitReader(body, MaxAnswer), Closer: response.Body, watch: watch, fail: fail}
	if !x.Streams {
		text, err := x.Peer.readWhole(response.Header, body)
		if err != nil {
			defer exchanged.Close()
			return nil, fail(err)
		}
		exchanged.Reader = bytes.NewReader(text)
	}
	response.Body = exchanged
	return response, nil
}

// readWhole reads an answer that is no error.
func (p *Peer) readWhole(header http.Header, body io.Reader) ([]byte, error) {
	text, err := readWhole(body)
	if err != nil {
		return nil, err
	}
	var reported struct{ Error json.RawMessage }
	switch {
	case bytes.HasPrefix(bytes.TrimSpace(text), []byte("<")):
		return nil, p.Refusal(0, header, []byte(WebPage))
	case json.Unmarshal(text, &reported) == nil && Present(reported.Error):
		return nil, p.Refusal(0, header, text)
	}
	return text, nil
}

// exchangedBody is the body of an answer. It keeps why it broke off.
type exchangedBody struct {
	io.Reader
	io.Closer
	watch *watchdog
	fail  func(error) error
}

// Read reads on.
func (b *exchangedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.fail(err)
	}
	return n, err
}

// Close ends the request.
func (b *exchangedBody) Close() error {
	defer b.watch.stop()
	return b.Closer.Close()
}
