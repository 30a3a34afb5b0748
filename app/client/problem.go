package client

import (
	"fmt"
	"net/http"
	"time"

	"bobbin/app/core"
)

// maxProblem is the maximum size of an error response, in bytes.
const maxProblem = 1 << 20

// ProblemError is an error response (RFC 9457). errors.Is matches it with its kind:
// core.ErrNotFound, core.ErrConflict …
type ProblemError struct {
	Type      string            `json:"type"`
	Title     string            `json:"title"`
	Status    int               `json:"status"`
	Detail    string            `json:"detail"`
	Instance  string            `json:"instance,omitempty"`
	Code      string            `json:"code"`
	RequestID string            `json:"request_id,omitempty"`
	Errors    []core.FieldError `json:"errors,omitempty"`
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
func (e *ProblemError) Unwrap() error {
	byCode := map[string]error{
		"context_floor": core.ErrContextFloor, "unprocessable": core.ErrUnprocessable,
		"stale": core.ErrStale, "canceled": core.ErrCanceled,
	}
	if kind := byCode[e.Code]; kind != nil {
		return kind
	}
	return map[int]error{
		http.StatusBadRequest:            core.ErrInvalid,
		http.StatusUnauthorized:          core.ErrUnauthorized,
		http.StatusForbidden:             core.ErrForbidden,
		http.StatusNotFound:              core.ErrNotFound,
		http.StatusConflict:              core.ErrConflict,
		http.StatusRequestEntityTooLarge: core.ErrTooLarge,
		http.StatusUnprocessableEntity:   core.ErrInvalid,
		http.StatusTooManyRequests:       core.ErrRateLimited,
		http.StatusServiceUnavailable:    core.ErrUnavailable,
		http.StatusBadGateway:            core.ErrModel,
		http.StatusGatewayTimeout:        core.ErrTimeout,
	}[e.Status]
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
