package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/auth/jwt"
	"bobbin/app/api/handlers"
	"bobbin/app/api/sse"
	"bobbin/app/core"
)

// statusGone is logged for a request whose caller did not wait for the answer.
const statusGone = 499

// handlerFunc answers a request or returns an error.
type handlerFunc func(*gin.Context) error

// handle makes a gin handler that answers the errors of h. An error also ends the
// chain, so that middlewares can be written the same way.
func (s *Server) handle(h handlerFunc) gin.HandlerFunc {
	return func(c *gin.Context) {
		if err := h(c); err != nil {
			c.Abort()
			s.fail(c, err)
		}
	}
}

// plain makes a gin handler of one that takes no query.
func (s *Server) plain(h handlerFunc) gin.HandlerFunc {
	return s.handle(func(c *gin.Context) error {
		if err := handlers.NoQuery(c); err != nil {
			return err
		}
		return h(c)
	})
}

// fail answers with the problem that err is, and logs what is not the caller's
// doing. In a stream that has begun the problem is an event.
func (s *Server) fail(c *gin.Context, err error) {
	ctx, p := c.Request.Context(), problemOf(err)
	if errors.Is(context.Cause(ctx), errStopped) { // the caller waits, and we do not
		err, p = errors.Join(errStopped, err), problemOf(errStopped)
		ctx = context.WithoutCancel(ctx)
	}
	// The HTTP server also ends the context of a request whose body is too slow, but
	// there somebody is still to be told.
	gone := ctx.Err() != nil && p.Code != handlers.CodeBodyTimeout
	if gone || errors.Is(err, sse.ErrGone) {
		s.log.DebugContext(ctx, "caller went away", slog.String("request_id", requestID(c)), slog.Any("err", err))
		if !c.Writer.Written() {
			c.Status(statusGone)
		}
		return
	}
	s.logFault(c, p, err)
	s.write(c, p)
}

// logFault logs an error once: internal ones somebody should look at, and the
// causes that problems do not show.
func (s *Server) logFault(c *gin.Context, p problem, err error) {
	ctx := c.Request.Context()
	facts := []any{slog.String("request_id", requestID(c)), slog.String("code", p.Code), slog.String("err", explain(err))}
	switch {
	case p.Status == http.StatusInternalServerError:
		s.log.ErrorContext(ctx, "request failed", facts...)
	case p.internal, p.Status > http.StatusInternalServerError:
		s.log.WarnContext(ctx, "request failed", facts...)
	}
}

// explain returns the error's words with the cause that core.Error keeps back.
func explain(err error) string {
	var shown *core.Error
	if errors.As(err, &shown) && shown.Err != nil {
		return fmt.Sprintf("%v: %v", err, shown.Err)
	}
	return err.Error()
}

// write is the only place where an error becomes bytes.
func (s *Server) write(c *gin.Context, p problem) {
	p.Instance, p.RequestID = c.Request.URL.Path, requestID(c)
	body, err := json.Marshal(p)
	if err != nil {
		panic("api: a problem is not JSON: " + err.Error()) // it holds texts and numbers only
	}
	h := c.Writer.Header()
	switch {
	case !c.Writer.Written():
		if p.Status == http.StatusUnauthorized {
			h.Set("WWW-Authenticate", challenge(p))
		}
		if seconds := p.retrySeconds(); seconds > 0 {
			h.Set("Retry-After", strconv.Itoa(seconds))
		}
		handlers.Write(c, p.Status, "application/problem+json", append(body, '\n'))
	case h.Get("Content-Type") == "text/event-stream":
		// Nobody is left to be told if this fails too.
		_ = sse.Fail(c.Writer, body, s.held().Stream)
	default:
		// Half an answer is out. Only a broken connection says that it is not whole.
		panic(http.ErrAbortHandler)
	}
}

// challenge is what RFC 6750 has the header WWW-Authenticate say: what was wrong with a
// token, nothing of keys.
func challenge(p problem) string {
	const realm = `Bearer realm="bobbin"`
	if p.Code != core.CodeTokenExpired && p.Code != jwt.CodeInvalid {
		return realm
	}
	why := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '"' || r == '\\' {
			return -1
		}
		return r
	}, p.Detail)
	return realm + `, error="invalid_token", error_description="` + why + `"`
}

// recoverPanics answers a panic as an internal error and logs where it was.
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
		s.log.ErrorContext(c.Request.Context(), "panic", slog.String("request_id", requestID(c)),
			slog.String("err", fmt.Sprint(v)), slog.String("stack", string(stack)))
		c.Abort()
		s.write(c, problemOf(errors.New("panic")))
	}()
	c.Next()
}

// noRoute answers a path that nothing is at.
func (s *Server) noRoute(c *gin.Context) error {
	path := c.Request.URL.Path
	hint := "there are " + strings.Join(s.roots, ", ")
	if trimmed := strings.TrimRight(path, "/"); trimmed != path && trimmed != "" {
		hint = "paths do not end in a slash"
	}
	return &core.Error{Kind: core.ErrNotFound, Code: codeRoute, Message: fmt.Sprintf("%.200s is no path of this server; %s", path, hint)}
}

// noMethod answers a method that the path does not have; gin has set Allow.
func (s *Server) noMethod(c *gin.Context) error {
	allowed := strings.Split(c.Writer.Header().Get("Allow"), ", ")
	slices.Sort(allowed)
	c.Header("Allow", strings.Join(allowed, ", "))
	return &core.Error{Kind: core.ErrInvalid, Code: codeMethod,
		Message: fmt.Sprintf("%.20s is not possible here; there is %s", c.Request.Method, strings.Join(allowed, ", "))}
}
