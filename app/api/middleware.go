package api

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"

	"bobbin/app/api/handlers"
	"bobbin/app/core"
	"bobbin/app/core/logging"
)

// requestIDKey is where a request's id is kept in its gin.Context.
const requestIDKey = "request_id"

// setRequestID gives the request its id: the caller's if it is valid, else a new one.
func setRequestID(c *gin.Context) {
	id := c.GetHeader("X-Request-ID")
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-"
	if id == "" || len(id) > 128 || strings.Trim(id, letters) != "" {
		id = core.NewID[string]()
	}
	c.Set(requestIDKey, id)
	c.Header("X-Request-ID", id)
	// All later log lines carry the id.
	c.Request = c.Request.WithContext(logging.With(c.Request.Context(), slog.String("request_id", id)))
}

func requestID(c *gin.Context) string { return c.GetString(requestIDKey) }

// observeRequest reports the request to the observer, and logs one line when it ends. Probes come every few
// seconds, so they are logged at debug level.
func (s *Server) observeRequest(c *gin.Context) {
	start := time.Now()
	ctx, ended := s.Observer.Request(c.Request.Context(), c.Request.Method, c.FullPath(), c.Request.Header)
	c.Request = c.Request.WithContext(ctx)
	defer func() {
		ended(c.Writer.Status(), strings.HasPrefix(c.Writer.Header().Get("Content-Type"), "text/event-stream"))
		level := slog.LevelInfo
		if isProbe(c.FullPath()) {
			level = slog.LevelDebug
		}
		r := c.Request
		caller, _ := core.IdentityFrom(r.Context())
		s.Logger.LogAttrs(r.Context(), level, "request",
			slog.String("request_id", requestID(c)), slog.String("method", r.Method), slog.String("path", r.URL.Path),
			slog.String("route", c.FullPath()), slog.Int("status", c.Writer.Status()), slog.Int("bytes", max(c.Writer.Size(), 0)),
			slog.Duration("dur", time.Since(start)), slog.String("owner", caller.Owner), slog.String("remote", r.RemoteAddr))
	}()
	c.Next()
}

// setSecurityHeaders keeps browsers from running, framing, caching or sharing responses.
func setSecurityHeaders(c *gin.Context) {
	h := c.Writer.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// authenticateCaller puts the caller's identity into the request's context and enforces the rate
// limit of the key, or of the end user. This machine's own user has none.
func (s *Server) authenticateCaller(c *gin.Context) error {
	caller, err := s.Auth.Authenticate(c.Request)
	if err != nil {
		return err
	}
	buckets, bucket, limit, whose, setting := s.rates, []string{caller.Owner, caller.Key, string(caller.KeyID)}, s.Limits.PerSecond, "with this key", "requests_per_second"
	if caller.User != "" {
		buckets, bucket, limit, whose, setting = s.users, []string{caller.Owner, caller.User}, s.Limits.UserPerSecond, "from this user", "user_requests_per_second"
	}
	if caller.User != "" || caller.Key != "" {
		if wait := buckets.Take(strings.Join(bucket, "\x00")); wait > 0 {
			return &core.Error{Kind: core.ErrRateLimited, RetryAfter: max(wait, time.Second),
				Message: fmt.Sprintf("more than %d requests per second %s; wait, then send fewer (the operator can raise limits.%s)", limit, whose, setting)}
		}
	}
	c.Request = c.Request.WithContext(core.WithIdentity(c.Request.Context(), caller))
	return nil
}

// requireScope refuses callers without the scope.
func (s *Server) requireScope(want core.Scopes) gin.HandlerFunc {
	return s.withErrors(func(c *gin.Context) error {
		caller, _ := core.IdentityFrom(c.Request.Context())
		return handlers.CheckScope(caller, want)
	})
}

// What pages of other origins may do and read. They may send any header: keys are headers that a page sets
// itself, not cookies, so credentials are never allowed.
const (
	corsMethods = "GET, HEAD, POST, PUT, PATCH, DELETE"
	corsExposed = "Content-Disposition, ETag, Idempotency-Replayed, Last-Event-ID, Location, Retry-After, WWW-Authenticate, X-Bobbin-History, X-Bobbin-Ignored, X-Request-ID, X-Session-Id, X-Should-Retry"
	corsMaxAge  = "600" // seconds for which a browser caches the preflight response
)

// setCORSHeaders lets pages of the configured origins read responses (CORS, Fetch
// standard). Other pages get no such header, and browsers hide the responses from them.
// A key is required all the same.
func (s *Server) setCORSHeaders(c *gin.Context) {
	path := c.Request.URL.Path
	shared := strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, openAIPrefix) || path == mcpRoute || path == "/version" || path == "/openapi.json"
	if len(s.Origins) == 0 || !shared { // the operator's paths are not
		return
	}
	h := c.Writer.Header()
	h.Add("Vary", "Origin")
	origins := c.Request.Header.Values("Origin")
	if len(origins) != 1 || !slices.Contains(s.Origins, origins[0]) {
		return
	}
	h.Set("Access-Control-Allow-Origin", origins[0])
	if c.Request.Method != http.MethodOptions || c.GetHeader("Access-Control-Request-Method") == "" {
		h.Set("Access-Control-Expose-Headers", corsExposed)
		return
	}
	h.Add("Vary", "Access-Control-Request-Method, Access-Control-Request-Headers")
	h.Set("Access-Control-Allow-Methods", corsMethods)
	h.Set("Access-Control-Allow-Headers", c.GetHeader("Access-Control-Request-Headers"))
	h.Set("Access-Control-Max-Age", corsMaxAge)
	c.AbortWithStatus(http.StatusNoContent)
}

// Limits of compression.
const (
	minCompressed = 1 << 10 // bytes of a response; shorter ones are sent uncompressed
	maxCompressed = 64      // responses at a time; each takes some hundred KiB, further ones are sent uncompressed
	jitterBytes   = 32
)

// compressed returns the handler with compression of responses to GET requests that accept gzip. Event
// streams are not compressed: each event has to arrive immediately. Neither are responses to requests
// that change something, which repeat what the caller sends.
//
// The length of a compressed response can reveal a secret to an attacker who makes the
// victim's browser send requests with chosen text (BREACH). Such requests carry no
// credentials here, since there are no cookies, and responses hold no keys or webhook
// secrets. Padding of random length is added nevertheless.
func compressed(plain http.Handler) http.Handler {
	wrap, err := gzhttp.NewWrapper(
		gzhttp.MinSize(minCompressed), gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.RandomJitter(jitterBytes, 0, false),
		gzhttp.ContentTypes([]string{"application/json", "application/problem+json", "application/jsonl", "text/markdown", "text/html", "text/css", "text/javascript"}),
	)
	if err != nil {
		panic("api: " + err.Error()) // the settings are constants
	}
	packed, slots := wrap(plain), make(chan struct{}, maxCompressed)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && !strings.HasSuffix(r.URL.Path, "/events") && handlers.Accepts(r.Header, "Accept-Encoding", "gzip") {
			select {
			case slots <- struct{}{}:
				defer func() { <-slots }()
				packed.ServeHTTP(w, r)
				return
			default:
			}
		}
		plain.ServeHTTP(w, r)
	})
}

// admitRequest makes requests wait until the server has started and refuses them once it
// stops, and those that start a run while the server is overloaded. Probes always pass. Slack's requests do not wait: they are only stored, which needs
// nothing but the database, and Slack wants a quick answer.
func (s *Server) admitRequest(c *gin.Context) error {
	if isProbe(c.FullPath()) {
		return nil
	}
	if !strings.HasPrefix(c.FullPath(), slackRoute) && !s.isAdmitting() {
		limit := time.NewTimer(s.Limits.Start)
		defer limit.Stop()
		select {
		case <-s.Ready:
		case <-limit.C:
		case <-s.drain:
		case <-c.Request.Context().Done():
		}
		if !s.isAdmitting() {
			return &core.Error{Kind: core.ErrUnavailable, Code: "not_ready", Message: "the server is starting and takes over the runs of an earlier process; try again in a moment"}
		}
	}
	if isClosed(s.drain) || !s.requests.TryRLock() {
		// A kept connection would lead to this process again.
		c.Header("Connection", "close")
		return &core.Error{Kind: core.ErrUnavailable, Code: "stopping", Message: "the server is stopping; try again in a moment"}
	}
	defer s.requests.RUnlock()
	// Whether the request asks an agent is decided by its route alone: its body is not read.
	asks := (c.Request.Method == http.MethodPost || c.Request.Method == http.MethodPatch) && asksAgent(c.FullPath())
	if s.Overloaded != nil && asks && s.Overloaded() {
		return &core.Error{Kind: core.ErrUnavailable, Code: "overloaded", RetryAfter: time.Second, Message: "more messages arrive than this server can answer; try again in a second"}
	}
	c.Next()
	return nil
}

func isProbe(route string) bool {
	return route == "/healthz" || route == "/readyz" || route == metricsRoute
}

func (s *Server) isAdmitting() bool { return s.Ready == nil || isClosed(s.Ready) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// How fast a body must arrive.
const (
	minUploadRate = 256 << 10        // bytes per second on average, for bodies that may be large
	minBodyRate   = 32 << 10         // bytes per second at any moment
	maxBodyLag    = 10 * time.Second // how far a body may fall behind minBodyRate
)

// formBytes is the size of a form besides its files and its message.
const formBytes = 64 << 10

// slackBytes is more than the handler of Slack's requests reads of a body: it has a limit of
// its own, and says so in Slack's way.
const slackBytes = 8 << 20

// slackTime is how long the body of a request of Slack may take: Slack gives up after 3 s, and
// until its signature is verified anybody may have sent it.
const slackTime = 3 * time.Second

// OpenAIFactor is how many times larger than others a body with a whole conversation may be.
const OpenAIFactor = 4

// bodyLimits returns how large the body of a request to the route may be, and how long it
// may take. A form may have files.
func (l Limits) bodyLimits(route string, form bool) (maxBytes int64, timeLimit time.Duration) {
	maxBytes = l.BodyBytes
	switch {
	case route == importRoute:
		maxBytes = max(maxBytes, l.ImportBytes)
	case strings.HasPrefix(route, slackRoute):
		return slackBytes, slackTime
	case strings.HasPrefix(route, openAIPrefix): // whole conversations
		maxBytes = OpenAIFactor * l.BodyBytes
	case route == blobsRoute:
		maxBytes = l.FileBytes + formBytes
	case form && (route == messagesRoute || route == messageRoute):
		maxBytes = l.BodyBytes + int64(l.FilesPerMessage)*l.FileBytes + formBytes
	default:
		return maxBytes, l.ReadBody
	}
	return maxBytes, l.ReadBody + time.Duration(maxBytes/minUploadRate)*time.Second
}

// limitBody bounds the request's body in size and time. The server's own read timeout
// cannot do this: it would continue after the body was read and end streams.
func (s *Server) limitBody(c *gin.Context) error {
	r := c.Request
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	maxBytes, timeLimit := s.Limits.bodyLimits(c.FullPath(), strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/form-data"))
	if r.ContentLength > maxBytes {
		err := core.Errorf(core.ErrTooLarge, "the body is larger than %d bytes", maxBytes)
		if c.FullPath() == importRoute {
			return handlers.HistoryTooLarge(err)
		}
		return err
	}
	b := &body{
		ReadCloser: http.MaxBytesReader(handlers.ServerWriter(c.Writer), r.Body, maxBytes),
		control:    http.NewResponseController(c.Writer), timeLimit: timeLimit,
	}
	// Only the writers of tests do not support deadlines.
	_ = b.control.SetReadDeadline(time.Now().Add(timeLimit)) // also for bodies that are never read
	r.Body = b
	return nil
}

// body is the body of a request. It must arrive within a time limit, and it may never fall
// behind the minimum rate by more than maxBodyLag, however fast it came before.
type body struct {
	io.ReadCloser
	control   *http.ResponseController
	timeLimit time.Duration
	deadline  time.Time     // timeLimit after the first read
	lag       time.Duration // how far the body is behind minBodyRate
}

// Read is part of io.Reader. At the end of the body it removes the deadline.
func (b *body) Read(p []byte) (int, error) {
	begin := time.Now()
	if b.deadline.IsZero() {
		b.deadline = begin.Add(b.timeLimit)
	}
	_ = b.control.SetReadDeadline(begin.Add(min(maxBodyLag-b.lag, b.deadline.Sub(begin))))
	n, err := b.ReadCloser.Read(p)
	b.lag = max(0, b.lag+time.Since(begin)-time.Duration(n)*time.Second/minBodyRate)
	if errors.Is(err, io.EOF) {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// reserveMemory charges what the request reads and answers to its caller's share of
// memory. GET requests wait until memory is free, unless the response is an event stream.
func (s *Server) reserveMemory(c *gin.Context) error {
	ctx := c.Request.Context()
	caller, _ := core.IdentityFrom(ctx)
	hold := s.Space.Memory.Hold(caller.Tenant())
	defer hold.Release()
	if c.Request.Method == http.MethodGet && !strings.HasSuffix(c.FullPath(), "/events") {
		if err := hold.Resize(ctx, handlers.AnswerBytes); err != nil {
			return err
		}
	}
	handlers.Charge(c, s.Space, hold)
	c.Next()
	return nil
}
