package api

import (
	"fmt"
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

// requestID returns the request's id.
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

// isProbe reports whether the route is for monitoring.
func isProbe(route string) bool {
	return route == "/healthz" || route == "/readyz" || route == metricsRoute
}

// isAdmitting reports whether the server has started.
func (s *Server) isAdmitting() bool { return s.Ready == nil || isClosed(s.Ready) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
