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
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
	"golang.org/x/time/rate"

	"bobbin/app/core"
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

// slowBody is the body of an answer, or what a program says, of which a flood is read slowly.
type slowBody struct {
	io.ReadCloser

	ctx   context.Context // of the request or program
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

const (
	tokenTime    = 10 * time.Second // how long a token server may take
	refusalPause = 10 * time.Second // between two replacements of tokens that are refused
)

// tokens are the access tokens of a server. One is kept until it expires or is refused. Safe for
// concurrent use.
type tokens struct {
	config   clientcredentials.Config
	client   *http.Client
	lock     chan struct{} // holds a value while somebody uses the fields below
	token    *oauth2.Token
	current  atomic.Pointer[string] // the access token, readable without the lock; nil = there was none
	replaced time.Time              // when a token was last replaced because it was refused
}

// errRefused means that a server refuses tokens that were just issued: new ones would not help.
var errRefused = errors.New("the server refuses the tokens that the token server issues")

// get returns a token that is valid and not the refused one; empty = none was refused. errRefused
// if one was replaced just now.
func (k *tokens) get(ctx context.Context, refused string) (string, error) {
	select {
	case k.lock <- struct{}{}:
		defer func() { <-k.lock }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	if k.token.Valid() && k.token.AccessToken != refused {
		return k.token.AccessToken, nil
	}
	if refused != "" && k.token.Valid() {
		if time.Since(k.replaced) < refusalPause {
			return "", errRefused
		}
		k.replaced = time.Now()
	}
	limited, cancel := context.WithTimeout(context.WithValue(ctx, oauth2.HTTPClient, k.client), tokenTime)
	defer cancel()
	token, err := k.config.Token(limited)
	if err != nil {
		return "", fmt.Errorf("no access token: the token server %w", explainToken(limited, err))
	}
	k.token = token
	k.current.Store(&token.AccessToken)
	return token.AccessToken, nil
}

// latest returns the access token that was issued last; empty = there was none.
func (k *tokens) latest() string {
	if token := k.current.Load(); token != nil {
		return *token
	}
	return ""
}

// explainToken returns why there is no token. It has nothing of an answer but its error code.
func explainToken(ctx context.Context, err error) error {
	var refused *oauth2.RetrieveError
	var failed *url.Error
	switch {
	case errors.As(err, &refused):
		return fmt.Errorf("answers %d %s", refused.Response.StatusCode, core.CleanText(core.Clip(refused.ErrorCode, 100)))
	case ctx.Err() != nil:
		return fmt.Errorf("does not answer within %s", tokenTime)
	case errors.As(err, &failed):
		return fmt.Errorf("cannot be reached: %w", explainAddress(failed.Err))
	}
	return errors.New("answers something that is no token")
}
