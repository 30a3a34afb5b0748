package mcp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"bobbin/app/core/netguard"
)

// Bounds of what comes from a server over HTTP.
const (
	maxHeader    = 64 << 10
	streamRate   = 64 << 10 // bytes a second of the stream that is always open, after the first streamBurst
	streamBurst  = 1 << 20
	answerRate   = 1 << 20 // the same of the stream of one answer
	answerBurst  = 2 * maxMessage
	idleTime     = 90 * time.Second
	maxIdleConns = 16
)

// web sends the requests to a server: with the headers of the definition, to public addresses or to
// hosts of the definition only, and with bounds on the answers.
type web struct {
	base    *http.Transport
	headers map[string]string
	tokens  *tokens // nil = the server needs none that a token server issues

	unsupported atomic.Pointer[error] // the latest answer that is not one of MCP; nil = there was none
}

// RoundTrip sends a request, and once more with a new token if the server refuses the one that it
// had.
func (w *web) RoundTrip(req *http.Request) (*http.Response, error) {
	if w.tokens == nil {
		return w.send(req, "")
	}
	token, err := w.tokens.get(req.Context(), "")
	if err != nil {
		return nil, err
	}
	response, err := w.send(req, token)
	if err != nil || response.StatusCode != http.StatusUnauthorized || req.Body != nil && req.GetBody == nil {
		return response, err
	}
	_ = response.Body.Close() // nothing was executed
	if token, err = w.tokens.get(req.Context(), token); err != nil {
		return nil, err
	}
	again := req.Clone(req.Context())
	if req.Body != nil {
		if again.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	return w.send(again, token)
}

// send sends a request with the token, if there is one.
func (w *web) send(req *http.Request, token string) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("User-Agent", "Bobbin")
	for name, value := range w.headers {
		req.Header.Set(name, value)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := w.base.RoundTrip(req)
	if err != nil {
		return nil, explainAddress(err)
	}
	if err := checkType(response); err != nil {
		w.unsupported.Store(&err)
	}
	perSecond, burst, left := rate.Limit(answerRate), answerBurst, int64(maxMessage)
	if strings.HasPrefix(strings.ToLower(response.Header.Get("Content-Type")), "text/event-stream") {
		left = -1 // its messages are bounded
	}
	if req.Method == http.MethodGet {
		perSecond, burst = streamRate, streamBurst
	}
	body := &slowBody{ReadCloser: response.Body, ctx: req.Context(), limit: rate.NewLimiter(perSecond, burst), left: left}
	response.Body = newFittedBody(body, left < 0)
	return response, nil
}

// newFittedBody returns a body whose messages fit: the lines of a stream of events that have one, or
// the whole body.
func newFittedBody(body io.ReadCloser, events bool) *fittedBody {
	if !events {
		return &fittedBody{ReadCloser: body, next: func() ([]byte, error) {
			text, err := io.ReadAll(body)
			return fitMessage(text), cmp.Or(err, io.EOF)
		}}
	}
	in := bufio.NewReader(body)
	return &fittedBody{ReadCloser: body, next: func() ([]byte, error) {
		line, err := readLine(in)
		message, ok := bytes.CutPrefix(line, []byte("data:"))
		if !ok || err != nil {
			return line, err
		}
		return slices.Concat([]byte("data:"), fitMessage(bytes.TrimSpace(message)), []byte("\n")), nil
	}}
}

// checkType returns an error for a successful answer whose content no MCP server sends.
func checkType(response *http.Response) error {
	if response.StatusCode != http.StatusOK {
		return nil
	}
	header := response.Header.Get("Content-Type")
	switch kind, _, _ := mime.ParseMediaType(header); kind {
	case "application/json", "text/event-stream":
		return nil
	}
	return fmt.Errorf("unsupported content type %q: check that url is that of an MCP server", header)
}

// explainAddress translates the errors of an address that may not be reached.
func explainAddress(err error) error {
	switch {
	case errors.Is(err, netguard.ErrNotPublic):
		return errors.New("its address is not public; if it may be reached, name the host in private_hosts")
	case errors.Is(err, netguard.ErrNoHost):
		return errors.New("its host does not exist")
	}
	return err
}

// slowBody is the body of an answer, of which a flood is read slowly.
type slowBody struct {
	io.ReadCloser

	ctx   context.Context // of the request
	limit *rate.Limiter
	left  int64 // bytes that may still come; -1 = any number
}

// Read reads at the rate of the limit.
func (b *slowBody) Read(p []byte) (int, error) {
	const most = 64 << 10
	p = p[:min(len(p), most)]
	if b.left >= 0 {
		if b.left == 0 {
			return 0, errTooLong
		}
		p = p[:min(int64(len(p)), b.left)]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left >= 0 {
		b.left -= int64(n)
	}
	if n > 0 && b.limit.WaitN(b.ctx, n) != nil {
		return n, b.ctx.Err()
	}
	return n, err
}
