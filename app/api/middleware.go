package api

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
	"bobbin/app/core/logging"
)

// requestIDKey is where a request's id is kept in its gin.Context.
const requestIDKey = "request_id"

// identify gives the request its id, the caller's own if it has a sane one.
func identify(c *gin.Context) {
	id := c.GetHeader("X-Request-ID")
	if !sane(id) {
		id = core.NewID[string]()
	}
	c.Set(requestIDKey, id)
	c.Header("X-Request-ID", id)
	// What is logged further down belongs to this request too.
	c.Request = c.Request.WithContext(logging.With(c.Request.Context(), slog.String("request_id", id)))
}

// sane reports whether a request id may go into our logs and headers.
func sane(id string) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-"
	return id != "" && len(id) <= 128 && strings.Trim(id, letters) == ""
}

// requestID returns the request's id.
func requestID(c *gin.Context) string { return c.GetString(requestIDKey) }

// observer is told of every request (telemetry).
type observer interface {
	// Request is told of a request that begins. Route is a template, empty for a path
	// that nothing is at. The request goes on with the context returned; ended is
	// called once, with the status of the answer and whether it was an event stream.
	Request(ctx context.Context, method, route string, header http.Header) (_ context.Context, ended func(status int, stream bool))
	// Stream is told of an event stream that is opened; ended is called once, with what
	// became of it: ended, gone, slow or failed.
	Stream() (ended func(outcome string))
}

// observe tells the observer of the request.
func (s *Server) observe(c *gin.Context) {
	if s.watch == nil {
		return
	}
	r := c.Request
	ctx, ended := s.watch.Request(r.Context(), r.Method, c.FullPath(), r.Header)
	c.Request = r.WithContext(ctx)
	defer func() {
		ended(c.Writer.Status(), strings.HasPrefix(c.Writer.Header().Get("Content-Type"), "text/event-stream"))
	}()
	c.Next()
}

// logAccess logs one line for a request, when it is over. Probes come every few
// seconds, so theirs are for us only.
func (s *Server) logAccess(c *gin.Context) {
	start := time.Now()
	defer func() {
		level := slog.LevelInfo
		switch c.FullPath() {
		case "/healthz", "/readyz", metricsRoute:
			level = slog.LevelDebug
		}
		r := c.Request
		caller, _ := core.IdentityFrom(r.Context())
		s.log.LogAttrs(r.Context(), level, "request",
			slog.String("request_id", requestID(c)), slog.String("method", r.Method), slog.String("path", r.URL.Path),
			slog.String("route", c.FullPath()), slog.Int("status", c.Writer.Status()), slog.Int("bytes", max(c.Writer.Size(), 0)),
			slog.Duration("dur", time.Since(start)), slog.String("owner", caller.Owner), slog.String("remote", r.RemoteAddr))
	}()
	c.Next()
}

// secure sets the headers that keep browsers from doing more with our answers
// than showing them to who asked.
func secure(c *gin.Context) {
	h := c.Writer.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// authenticate puts the caller's identity into the request's context, and holds up who
// asks too often.
func (s *Server) authenticate(c *gin.Context) error {
	caller, err := s.auth.Authenticate(c.Request)
	if err != nil {
		return err
	}
	if err := s.holdUp(caller); err != nil {
		return err
	}
	c.Request = c.Request.WithContext(core.WithIdentity(c.Request.Context(), caller))
	return nil
}

// holdUp returns ErrRateLimited for a key or an end user that asks too often.
func (s *Server) holdUp(caller core.Identity) error {
	if caller.User != "" {
		if wait := s.users.Take(caller.Owner + "\x00" + caller.User); wait > 0 {
			return &core.Error{Kind: core.ErrRateLimited, RetryAfter: max(wait, time.Second),
				Message: fmt.Sprintf("more than %d requests a second came from this user; wait, then go on more slowly (the operator can raise limits.user_requests_per_second)", s.limits.UserPerSecond)}
		}
		return nil
	}
	if caller.Key == "" {
		return nil
	}
	bucket := strings.Join([]string{caller.Owner, caller.Key, string(caller.KeyID)}, "\x00")
	if wait := s.rates.Take(bucket); wait > 0 {
		return &core.Error{Kind: core.ErrRateLimited, RetryAfter: max(wait, time.Second),
			Message: fmt.Sprintf("more than %d requests a second came with this key; wait, then go on more slowly (the operator can raise limits.requests_per_second)", s.limits.PerSecond)}
	}
	return nil
}

// codeScope tells that a key is good, but not for this.
const codeScope = "missing_scope"

// needs refuses callers who may not do what is wanted, before anything is done.
func (s *Server) needs(want core.Rights) gin.HandlerFunc {
	return s.handle(func(c *gin.Context) error {
		caller, _ := core.IdentityFrom(c.Request.Context())
		if caller.Rights.Has(want) {
			return nil
		}
		message := fmt.Sprintf("this needs the scope %s, and the key has %s; the operator makes another with: bobbin keys create <name> --scopes …", want, orNone(caller.Rights.String()))
		if caller.User != "" {
			message = fmt.Sprintf("this needs the scope %s, and the token has %s", want, orNone(caller.Rights.String()))
		}
		if want == core.CanMetrics {
			message = "this key may not read the metrics, which are of all owners: it lacks the scope metrics; the operator can make one with it, add the name of a configured key to metrics.keys, or set metrics.open"
		}
		return &core.Error{Kind: core.ErrForbidden, Code: codeScope, Message: message}
	})
}

// orNone says that there is nothing where there is nothing.
func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
