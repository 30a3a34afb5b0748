package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/auth"
	"bobbin/app/api/handlers"
	"bobbin/app/core"
)

// statusClientClosed is logged for a request whose client disconnected.
const statusClientClosed = 499

// handlerFunc answers a request or returns an error.
type handlerFunc func(*gin.Context) error

// withErrors returns a gin handler that answers the errors of h. An error also ends the
// chain, so middlewares are written the same way.
func (s *Server) withErrors(h handlerFunc) gin.HandlerFunc {
	return func(c *gin.Context) {
		if err := h(c); err != nil {
			c.Abort()
			s.writeError(c, err)
		}
	}
}

// withoutQuery is withErrors for a handler without query parameters, which it refuses.
func (s *Server) withoutQuery(h handlerFunc) gin.HandlerFunc {
	return s.withErrors(func(c *gin.Context) error {
		if err := handlers.NoQuery(c); err != nil {
			return err
		}
		return h(c)
	})
}

// writeError answers with the problem of err and logs faults that are not the caller's.
// In a stream that has begun, the problem is an event.
func (s *Server) writeError(c *gin.Context, err error) {
	ctx, p := c.Request.Context(), problemOf(err)
	if errors.Is(context.Cause(ctx), errStopped) { // the server ended the request, not the caller
		err, p = errors.Join(errStopped, err), problemOf(errStopped)
		ctx = context.WithoutCancel(ctx)
	}
	// The HTTP server also ends the context of a request whose body is too slow, but then
	// the client still waits for the answer.
	gone := ctx.Err() != nil && p.Code != handlers.CodeBodyTimeout
	if gone || errors.Is(err, handlers.ErrGone) {
		s.Logger.DebugContext(ctx, "client disconnected", slog.String("request_id", requestID(c)), slog.Any("err", err))
		if !c.Writer.Written() {
			c.Status(statusClientClosed)
		}
		return
	}
	s.logFault(c.Request.Context(), p, err, slog.String("request_id", requestID(c)))
	s.writeProblem(c, p)
}

// logFault logs internal errors, and causes that the problem does not show, with more facts.
func (s *Server) logFault(ctx context.Context, p problem, err error, facts ...any) {
	text := err.Error()
	if shown := (*core.Error)(nil); errors.As(err, &shown) && shown.Err != nil {
		text += ": " + shown.Err.Error()
	}
	facts = append(facts, slog.String("code", p.Code), slog.String("err", text))
	switch {
	case p.Status == http.StatusInternalServerError:
		s.Logger.ErrorContext(ctx, "request failed", facts...)
	case p.internal, p.Status > http.StatusInternalServerError:
		s.Logger.WarnContext(ctx, "request failed", facts...)
	}
}

// explainError returns what may be shown of an error in the answer of another protocol, and
// whether it is the caller's fault; it logs what may not be shown.
func (s *Server) explainError(ctx context.Context, err error) (text string, callers bool) {
	p := problemOf(err)
	if ctx.Err() == nil {
		s.logFault(ctx, p, err)
	}
	text = fmt.Sprintf("%s (%s)", p.Detail, p.Code)
	if seconds := p.retrySeconds(); seconds > 0 {
		text += fmt.Sprintf("; retry in %d s", seconds)
	}
	return text, p.Status < http.StatusInternalServerError
}

// writeProblem writes the problem; no other code writes error bodies.
func (s *Server) writeProblem(c *gin.Context, p problem) {
	p.Instance, p.RequestID = c.Request.URL.Path, requestID(c)
	format := formatOf(c.Request.URL.Path)
	body, err := format.encode(p)
	if err != nil {
		panic("api: a problem is not JSON: " + err.Error()) // it holds only strings and numbers
	}
	h := c.Writer.Header()
	switch {
	case !c.Writer.Written():
		h.Del("Content-Disposition") // of a file that it is not
		if p.Status == http.StatusUnauthorized {
			challenge := `Bearer realm="bobbin"` // RFC 6750; about keys it says nothing more
			if p.Code == core.CodeTokenExpired || p.Code == auth.CodeInvalid {
				challenge += `, error="invalid_token"`
			}
			h.Set("WWW-Authenticate", challenge)
		}
		if seconds := p.retrySeconds(); seconds > 0 {
			h.Set("Retry-After", strconv.Itoa(seconds))
		}
		handlers.Write(c, format.status(p), format.mediaType, append(body, '\n'))
	case h.Get("Content-Type") == "text/event-stream":
		// If this fails, the client is gone.
		_ = handlers.FailStream(c.Writer, format.frame(body), s.Limits.Stream)
	default:
		// Part of the response was sent. Only a broken connection shows that it is incomplete.
		panic(http.ErrAbortHandler)
	}
}

// recoverPanics answers a panic as an internal error and logs its stack.
func (s *Server) recoverPanics(c *gin.Context) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			panic(v)
		}
		stack := debug.Stack()
		s.Logger.ErrorContext(c.Request.Context(), "panic", slog.String("request_id", requestID(c)),
			slog.String("err", fmt.Sprint(v)), slog.String("stack", string(stack)))
		c.Abort()
		s.writeProblem(c, problemOf(errors.New("panic")))
	}()
	c.Next()
}

// noRoute answers an unknown path.
func (s *Server) noRoute(c *gin.Context) error {
	path := c.Request.URL.EscapedPath()
	hint := "see the documentation at /docs; paths begin with /api/v1, /v1 or /mcp"
	if trimmed := strings.TrimRight(path, "/"); trimmed != path && trimmed != "" {
		hint = "paths do not end in a slash"
	}
	return &core.Error{Kind: core.ErrNotFound, Code: codeRoute, Message: fmt.Sprintf("no endpoint %.200s; %s", path, hint)}
}

// noMethod answers a method that the path does not support; gin has set Allow.
func (s *Server) noMethod(c *gin.Context) error {
	allowed := strings.Split(c.Writer.Header().Get("Allow"), ", ")
	slices.Sort(allowed)
	c.Header("Allow", strings.Join(allowed, ", "))
	return &core.Error{Kind: core.ErrInvalid, Code: codeMethod,
		Message: fmt.Sprintf("the method %.20s is not allowed here; use %s", c.Request.Method, strings.Join(allowed, ", "))}
}
