package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/auth"
	"bobbin/app/api/handlers"
	"bobbin/app/api/ops"
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
	if shown, ok := errors.AsType[*core.Error](err); ok && shown.Err != nil {
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
		status := p.Status
		if status == http.StatusUnprocessableEntity && format.mediaType == "application/json" { // the other protocols have one status for bad requests
			status = http.StatusBadRequest
		}
		handlers.Write(c, status, format.mediaType, append(body, '\n'))
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

type problem struct {
	ops.Problem
	retryAfter time.Duration
	internal   bool // nothing of the error may be shown
}

// Codes of routing errors.
const (
	codeMethod = "method_not_allowed"
	codeRoute  = "no_such_route"
)

// byKind returns the answer for the kind of err; false for an error without a kind.
func byKind(err error) (ops.ErrorKind, bool) {
	for _, k := range ops.ErrorKinds() {
		if errors.Is(err, k.Kind) {
			return k, true
		}
	}
	return ops.ErrorKind{}, false
}

// problemOf returns what may be shown of err: the message of a core.Error, only the kind
// of other errors with a kind, and nothing of the rest.
func problemOf(err error) problem {
	var shown *core.Error
	if !errors.As(err, &shown) {
		s, known := byKind(err)
		detail := "no details; search the server's log for the request id"
		if !known {
			s, detail = ops.ErrorKind{Status: http.StatusInternalServerError, Title: "Internal error", Code: "internal"}, "internal error"
		}
		return problem{Problem: s.Problem(s.Code, detail), internal: true}
	}
	s, known := map[string]ops.ErrorKind{
		handlers.CodeMalformed:   {Status: http.StatusBadRequest, Title: "Malformed body"},
		handlers.CodeMediaType:   {Status: http.StatusUnsupportedMediaType, Title: "Unsupported media type"},
		handlers.CodeBodyTimeout: {Status: http.StatusRequestTimeout, Title: "Body too slow"},
		core.CodeLinkExpired:     {Status: http.StatusGone, Title: "Link expired"},
		core.CodeFileDeleted:     {Status: http.StatusGone, Title: "File deleted"},
		codeMethod:               {Status: http.StatusMethodNotAllowed, Title: "Method not allowed"},
	}[shown.Code]
	if !known {
		s, known = byKind(shown.Kind)
	}
	if !known {
		return problemOf(errors.Join(shown.Err)) // no kind: a programming error
	}
	p := problem{Problem: s.Problem(cmp.Or(shown.Code, s.Code), shown.Message), retryAfter: shown.RetryAfter}
	p.Errors = shown.Fields
	return p
}

// ProblemOf returns how the API answers err, without the request.
func ProblemOf(err error) ops.Problem { return problemOf(err).Problem }

// retrySeconds returns the value of the header Retry-After, 0 for none. Problems with status 429 and 503
// always have one.
func (p problem) retrySeconds() int {
	seconds := int(math.Ceil(p.retryAfter.Seconds()))
	if p.Status == http.StatusTooManyRequests || p.Status == http.StatusServiceUnavailable {
		return max(seconds, 1)
	}
	return seconds
}

// openAIPrefix begins the paths of the OpenAI protocol.
const openAIPrefix = "/v1/"

// errorFormat is how the errors of a protocol look.
type errorFormat struct {
	mediaType string
	encode    func(p problem) ([]byte, error)
	frame     func(body []byte) []byte // in a stream that has begun
}

func formatOf(path string) errorFormat {
	if strings.HasPrefix(path, openAIPrefix) {
		frame := func(body []byte) []byte { return append(append([]byte("data: "), body...), "\n\n"...) }
		return errorFormat{"application/json", encodeOpenAIError, frame}
	}
	if path == mcpRoute {
		return errorFormat{"application/json", encodeMCPError, handlers.ErrorFrame}
	}
	return errorFormat{"application/problem+json", func(p problem) ([]byte, error) { return core.EncodeJSON(p) }, handlers.ErrorFrame}
}

// encodeOpenAIError returns the body of an error. Its message names all faults: the format has
// room for one field only, param.
func encodeOpenAIError(p problem) ([]byte, error) {
	known := map[int]string{http.StatusUnauthorized: "authentication_error", http.StatusForbidden: "permission_error", http.StatusTooManyRequests: "rate_limit_error"}
	class := cmp.Or(known[p.Status], "invalid_request_error")
	if p.Status >= http.StatusInternalServerError {
		class = "server_error"
	}
	e := map[string]any{"message": p.Detail, "type": class, "param": nil, "code": p.Code}
	if p.Code == "context_floor" {
		e["code"] = "context_length_exceeded" // which clients know
	}
	var faults []string
	for _, fault := range p.Errors {
		faults = append(faults, fault.Field+" "+fault.Detail)
	}
	if len(faults) > 0 {
		e["message"], e["param"] = strings.Join(faults, "; "), p.Errors[0].Field
	}
	return core.EncodeJSON(map[string]any{"error": e})
}

// encodeMCPError returns the body of an error of the MCP endpoint before a message is read, whose id is
// not known. The status says more to clients.
func encodeMCPError(p problem) ([]byte, error) {
	code := -32600 // an invalid request
	if p.Status >= http.StatusInternalServerError {
		code = -32603 // an internal error
	}
	data := map[string]string{"code": p.Code, "request_id": p.RequestID}
	return core.EncodeJSON(map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": code, "message": p.Detail, "data": data}})
}
