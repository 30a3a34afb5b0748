package api

import (
	"cmp"
	"errors"
	"math"
	"net/http"
	"strings"
	"time"

	"bobbin/app/api/handlers"
	"bobbin/app/api/ops"
	"bobbin/app/core"
)

// problem is an error as it is answered.
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

// codeContextFloor means that a message does not fit the model's window.
const codeContextFloor = "context_floor"

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
	status    func(p problem) int
}

// formatOf returns the format of errors on the path.
func formatOf(path string) errorFormat {
	if strings.HasPrefix(path, openAIPrefix) {
		frame := func(body []byte) []byte { return append(append([]byte("data: "), body...), "\n\n"...) }
		return errorFormat{"application/json", encodeOpenAIError, frame, openAIStatus}
	}
	if path == mcpRoute {
		return errorFormat{"application/json", encodeMCPError, handlers.ErrorFrame, openAIStatus}
	}
	return errorFormat{"application/problem+json", func(p problem) ([]byte, error) { return core.EncodeJSON(p) }, handlers.ErrorFrame, func(p problem) int { return p.Status }}
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
	if p.Code == codeContextFloor {
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

// openAIStatus returns the status of an error: the API answers bad requests with 400.
func openAIStatus(p problem) int {
	if p.Status == http.StatusUnprocessableEntity {
		return http.StatusBadRequest
	}
	return p.Status
}

// Codes of JSON-RPC.
const (
	rpcInvalidRequest = -32600
	rpcInternal       = -32603
)

// encodeMCPError returns the body of an error of the MCP endpoint before a message is read, whose id is
// not known. The status says more to clients.
func encodeMCPError(p problem) ([]byte, error) {
	code := rpcInvalidRequest
	if p.Status >= http.StatusInternalServerError {
		code = rpcInternal
	}
	data := map[string]string{"code": p.Code, "request_id": p.RequestID}
	return core.EncodeJSON(map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": code, "message": p.Detail, "data": data}})
}
