package client

import (
	"fmt"
	"net/http"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/core"
)

// maxProblem is the maximum size of an error response, in bytes.
const maxProblem = 1 << 20

// ProblemError is an error response (RFC 9457). errors.Is matches it with its kind:
// core.ErrNotFound, core.ErrConflict …
type ProblemError struct {
	ops.Problem
	// RetryAfter is the pause before a retry that the server asks for; 0 = none.
	RetryAfter time.Duration `json:"-"`
}

// Error returns the server's explanation.
func (e *ProblemError) Error() string {
	switch {
	case e.Detail == "" && e.Title == "":
		return fmt.Sprintf("the server answered with status %d", e.Status)
	case e.Status == http.StatusInternalServerError && e.RequestID != "":
		return fmt.Sprintf("%s (request id %s)", e.Detail, e.RequestID)
	case e.Detail == "":
		return e.Title
	default:
		return e.Detail
	}
}

// Unwrap returns the error's kind, nil if it has none.
func (e *ProblemError) Unwrap() (kind error) {
	if e.Status == http.StatusBadRequest {
		return core.ErrInvalid
	}
	for _, k := range ops.ErrorKinds() {
		switch {
		case k.Code == e.Code:
			return k.Kind
		case k.Status == e.Status && kind == nil:
			kind = k.Kind
		}
	}
	return kind
}

// isTemporary reports whether the same request may succeed soon.
func (e *ProblemError) isTemporary() bool {
	switch e.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	default:
		return false
	}
}
