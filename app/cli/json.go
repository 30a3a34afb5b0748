package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"bobbin/app/cli/term"
	"bobbin/app/client"
	"bobbin/app/core"
)

// withJSON gives the commands the flag --json: one JSON document on the standard
// output, with the field names of the API, and errors as problems (RFC 9457) on the
// standard error.
func (p *program) withJSON(cmds ...*cobra.Command) {
	for _, cmd := range cmds {
		cmd.Flags().BoolVar(&p.json, "json", false, "one JSON document, errors too")
	}
}

// printJSON prints a document as every command with --json does.
func (p *program) printJSON(v any) error { return writeJSON(p.Out, v) }

// aside is where a command with --json says what is not its document.
func (p *program) aside() io.Writer {
	if p.json {
		return io.Discard
	}
	return p.Out
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// problem is an error as --json tells it; the fields are those of the API.
type problem struct {
	Type      string            `json:"type"`
	Title     string            `json:"title"`
	Status    int               `json:"status"`
	Detail    string            `json:"detail"`
	Code      string            `json:"code"`
	RequestID string            `json:"request_id,omitempty"`
	Errors    []core.FieldError `json:"errors,omitempty"`
}

// problemOf returns the problem of an error. What the server said stays as it was.
func problemOf(err error) problem {
	var told *client.ProblemError
	if errors.As(err, &told) {
		return problem{told.Type, told.Title, told.Status, told.Error(), told.Code, told.RequestID, told.Errors}
	}
	kind := problemKind{nil, "internal", "Internal error", 500}
	if i := slices.IndexFunc(problemKinds(), func(k problemKind) bool { return errors.Is(err, k.err) }); i >= 0 {
		kind = problemKinds()[i]
	}
	out := problem{Type: "urn:bobbin:problem:" + kind.code, Title: kind.title, Status: kind.status, Detail: term.Sentence(err), Code: kind.code}
	var shown *core.Error
	if errors.As(err, &shown) {
		out.Detail, out.Errors = shown.Message, shown.Fields
	}
	return out
}

// problemKind is how a kind of error is told.
type problemKind struct {
	err    error
	code   string
	title  string
	status int
}

// problemKinds are the kinds as the API tells them.
func problemKinds() []problemKind {
	return []problemKind{
		{core.ErrInvalid, "invalid", "Invalid request", 422},
		{core.ErrUnauthorized, "unauthorized", "Unauthorized", 401},
		{core.ErrForbidden, "forbidden", "Forbidden", 403},
		{core.ErrNotFound, "not_found", "Not found", 404},
		{core.ErrConflict, "conflict", "Conflict", 409},
		{core.ErrTooLarge, "too_large", "Too large", 413},
		{core.ErrUnprocessable, "unprocessable", "Unprocessable", 422},
		{core.ErrRateLimited, "rate_limited", "Too many requests", 429},
		{core.ErrContextFloor, "context_floor", "Context floor", 422},
		{core.ErrUnavailable, "unavailable", "Unavailable", 503},
		{core.ErrModel, "model", "Model failed", 502},
		{core.ErrTimeout, "timeout", "Time limit passed", 504},
		{core.ErrCanceled, "canceled", "Canceled", 409},
	}
}

// tell prints an error; asked says whether --json was on the command line.
func (p *program) tell(err error, asked bool) {
	var silent *silentError
	switch {
	case errors.As(err, &silent):
	case p.json || asked:
		_ = writeJSON(p.Err, problemOf(err)) // nobody is there to be told
	default:
		fmt.Fprintf(p.Err, "bobbin: %s\n", term.Sentence(err))
	}
}

// silentError is the error of a command that has told it already.
type silentError struct{ text string }

// Error returns what was told.
func (e *silentError) Error() string { return e.text }
