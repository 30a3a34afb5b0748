package mcp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
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
}

// RoundTrip sends a request. An answer that no MCP server gives is an error.
func (w *web) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("User-Agent", "Bobbin")
	for name, value := range w.headers {
		req.Header.Set(name, value)
	}
	response, err := w.base.RoundTrip(req)
	if err != nil {
		return nil, explainAddress(err)
	}
	header := response.Header.Get("Content-Type")
	kind, _, _ := mime.ParseMediaType(header)
	if isEvents := kind == "text/event-stream"; isEvents || kind == "application/json" || response.StatusCode != http.StatusOK {
		perSecond, burst := rate.Limit(answerRate), answerBurst
		if req.Method == http.MethodGet {
			perSecond, burst = streamRate, streamBurst
		}
		response.Body = newFittedBody(&slowBody{ReadCloser: response.Body, ctx: req.Context(), limit: rate.NewLimiter(perSecond, burst)}, isEvents)
		return response, nil
	}
	_ = response.Body.Close()
	return nil, fmt.Errorf("unsupported content type %q: check that url is that of an MCP server", header)
}

// newFittedBody returns a body whose messages fit: the whole, or of a stream of events the lines that have one.
func newFittedBody(body io.ReadCloser, events bool) *fittedBody {
	if !events {
		return &fittedBody{ReadCloser: body, next: func() ([]byte, error) {
			text, err := io.ReadAll(io.LimitReader(body, maxMessage+1))
			if len(text) > maxMessage {
				return nil, errTooLong
			}
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
}

// Read reads at the rate of the limit.
func (b *slowBody) Read(p []byte) (int, error) {
	const most = 64 << 10
	n, err := b.ReadCloser.Read(p[:min(len(p), most)])
	if n > 0 && b.limit.WaitN(b.ctx, n) != nil {
		return n, b.ctx.Err()
	}
	return n, err
}

const (
	tokenTime    = 10 * time.Second // how long a token server may take
	refusalPause = 10 * time.Second // between two replacements of tokens that are refused
)

// tokens are the access tokens of a server, for the SDK (auth.OAuthHandler). One is kept until it expires or is
// refused. Safe for concurrent use.
type tokens struct {
	config clientcredentials.Config
	client *http.Client
	token  atomic.Pointer[oauth2.Token] // the latest; nil = there was none

	mu       sync.Mutex // held while a token is requested
	replaced time.Time  // guarded by mu; when a token was last replaced because it was refused
}

// errRefused means that a server refuses tokens that were just issued: new ones would not help.
var errRefused = errors.New("the server refuses the tokens that the token server issues")

// TokenSource returns a token that is valid.
func (k *tokens) TokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	token, err := k.get(ctx, "")
	return oauth2.StaticTokenSource(token), err
}

// Authorize replaces the token of a request that the server refused, which is sent again then.
func (k *tokens) Authorize(ctx context.Context, r *http.Request, refusal *http.Response) error {
	_ = refusal.Body.Close() // nothing was executed
	if refusal.StatusCode != http.StatusUnauthorized {
		return errors.New(http.StatusText(refusal.StatusCode))
	}
	_, err := k.get(ctx, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	return err
}

// get returns a token that is valid and not the refused one; empty = none. errRefused if one was replaced just now.
func (k *tokens) get(ctx context.Context, refused string) (*oauth2.Token, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	token := k.token.Load()
	if token.Valid() && token.AccessToken != refused {
		return token, nil
	}
	if refused != "" && token.Valid() {
		if time.Since(k.replaced) < refusalPause {
			return nil, errRefused
		}
		k.replaced = time.Now()
	}
	limited, cancel := context.WithTimeout(context.WithValue(ctx, oauth2.HTTPClient, k.client), tokenTime)
	defer cancel()
	token, err := k.config.Token(limited)
	if err != nil {
		return nil, fmt.Errorf("no access token: the token server %w", explainToken(limited, err))
	}
	k.token.Store(token)
	return token, nil
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

// How much of what a program says beside the protocol is in the log.
const (
	linesPerSecond = 5
	linesAtOnce    = 50
	maxLine        = 1 << 10 // bytes of a line
)

// programRate is how many bytes a second a program may say for long, after the first 2*maxMessage: then it waits.
const programRate = 4 << 20

// output is what a program says beside the protocol: its lines are in the log, in bounds. Safe for
// concurrent use.
type output struct {
	ctx   context.Context // an io.Writer has no other way to get it
	log   *slog.Logger
	hide  func(text string) string // removes secrets
	lines *rate.Limiter
	pace  *rate.Limiter // of all that the program says, messages too

	mu     sync.Mutex
	line   []byte // guarded by mu; the beginning of the line that is being written: 2*maxLine, so that secrets are found whole
	latest string // guarded by mu
}

func newOutput(ctx context.Context, log *slog.Logger, hide func(string) string) *output {
	return &output{ctx: ctx, log: log, hide: hide, lines: rate.NewLimiter(linesPerSecond, linesAtOnce), pace: rate.NewLimiter(programRate, 2*maxMessage)}
}

// Write takes the standard error, of which a flood has to wait. It never fails.
func (o *output) Write(p []byte) (int, error) {
	_ = o.pace.WaitN(o.ctx, len(p)) // the program ends with ctx
	o.mu.Lock()
	defer o.mu.Unlock()
	for part := range bytes.Lines(p) {
		o.line = append(o.line, part[:min(len(part), max(2*maxLine-len(o.line), 0))]...)
		if bytes.HasSuffix(part, []byte("\n")) {
			o.logLine(o.line)
			o.line = o.line[:0]
		}
	}
	return len(p), nil
}

// logLine logs a line; o.mu is held.
func (o *output) logLine(line []byte) {
	line = line[:min(len(line), 2*maxLine)]
	text := core.Clip(strings.TrimSpace(core.CleanText(core.StripControls(o.hide(strings.ToValidUTF8(string(line), "?"))))), maxLine)
	if text == "" {
		return
	}
	o.latest = text
	if o.lines.Allow() {
		o.log.InfoContext(o.ctx, "mcp server wrote", "text", text)
	}
}

// last returns the last line; nothing of no output.
func (o *output) last() string {
	if o == nil {
		return ""
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return core.Clip(o.latest, 300)
}

// newMessages returns a reader of the messages of a program: one JSON object a line. What is no message is logged.
func newMessages(program io.ReadCloser, out *output) *fittedBody {
	in := bufio.NewReaderSize(program, 64<<10)
	return &fittedBody{ReadCloser: program, next: func() ([]byte, error) {
		line, err := readLine(in)
		if line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte(byteOrderMark))); err != nil || len(line) == 0 {
			return nil, err
		}
		var message struct {
			JSONRPC string `json:"jsonrpc"`
		}
		if json.Unmarshal(line, &message) == nil && message.JSONRPC == "2.0" {
			return append(fitMessage(line), '\n'), nil
		}
		out.mu.Lock()
		defer out.mu.Unlock()
		out.logLine(line)
		return nil, nil
	}}
}

// errTooLong ends the connection to a server whose message has no end.
var errTooLong = fmt.Errorf("it sent a message of more than %d MiB", maxMessage>>20)

// readLine returns the next line with its end. An error may come with a line that has none.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > maxMessage {
			return nil, errTooLong
		}
		line = append(line, part...)
		if err == nil || !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}
