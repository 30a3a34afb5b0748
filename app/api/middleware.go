package api

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

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

// observeRequest reports the request to the observer.
func (s *Server) observeRequest(c *gin.Context) {
	r := c.Request
	ctx, ended := s.Observer.Request(r.Context(), r.Method, c.FullPath(), r.Header)
	c.Request = r.WithContext(ctx)
	defer func() {
		ended(c.Writer.Status(), strings.HasPrefix(c.Writer.Header().Get("Content-Type"), "text/event-stream"))
	}()
	c.Next()
}

// logAccess logs one line when a request ends. Probes come every few seconds, so they are
// logged at debug level.
func (s *Server) logAccess(c *gin.Context) {
	start := time.Now()
	defer func() {
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

// codeScope means that the key is valid but lacks the scope.
const codeScope = "missing_scope"

// requireScope refuses callers without the scope.
func (s *Server) requireScope(want core.Scopes) gin.HandlerFunc {
	return s.withErrors(func(c *gin.Context) error {
		caller, _ := core.IdentityFrom(c.Request.Context())
		if caller.Rights.Has(want) {
			return nil
		}
		message := fmt.Sprintf("this requires the scope %s, and the key has %s; the operator creates a key with: bobbin keys create <name> --scopes …", want, orNone(caller.Rights.String()))
		if caller.User != "" {
			message = fmt.Sprintf("this requires the scope %s, and the token has %s", want, orNone(caller.Rights.String()))
		}
		if want == core.CanMetrics {
			message = "this key cannot read the metrics, which cover all owners: it lacks the scope metrics; the operator can create a key with it, add the name of a configured key to metrics.keys, or set metrics.open"
		}
		return &core.Error{Kind: core.ErrForbidden, Code: codeScope, Message: message}
	})
}

// orNone returns s, or "none" if it is empty.
func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
