package core

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kinds of errors. A kind decides how a surface answers: API.md gives each its
// HTTP status. Test with errors.Is(err, core.ErrNotFound).
var (
	ErrInvalid       = errors.New("invalid")           // the caller sent something wrong (400 or 422)
	ErrUnauthorized  = errors.New("unauthorized")      // no valid key (401)
	ErrForbidden     = errors.New("forbidden")         // known, but may not (403)
	ErrNotFound      = errors.New("not found")         // does not exist, or belongs to somebody else (404)
	ErrConflict      = errors.New("conflict")          // the state does not allow it now (409)
	ErrTooLarge      = errors.New("too large")         // over a size limit (413)
	ErrUnprocessable = errors.New("unprocessable")     // understood, but there is nothing to be done (422)
	ErrRateLimited   = errors.New("rate limited")      // too much at once (429)
	ErrContextFloor  = errors.New("context floor")     // what cannot be shrunk does not fit the model's window (422)
	ErrUnavailable   = errors.New("unavailable")       // stopping, or a part is not reachable (503)
	ErrModel         = errors.New("model")             // the language model failed (502)
	ErrStale         = errors.New("stale")             // a fenced or compare-and-set write lost; reload and try again (409)
	ErrTimeout       = errors.New("time limit passed") // a configured time limit passed (504)
	ErrNoDatabase    = errors.New("database away")     // the database could not be reached, and may be soon; the cause of an ErrUnavailable
	ErrCanceled      = errors.New("canceled")          // somebody asked to stop it; the cause of a canceled run's context (409)
)

// ErrStopping is why work of a run ends when the process stops: another process continues it.
var ErrStopping = errors.New("the process is stopping")

// Error is an error whose message may be shown to the caller. Every other error
// is internal: logged, and answered with "internal error".
type Error struct {
	Kind    error  // one of the Err… values above
	Message string // a sentence that says what is wrong and what to do
	// Code is a stable word for programs, such as "context_floor"; empty = taken from Kind.
	Code string
	// Fields says what is wrong with single inputs, by their path ("content", "context.policy").
	Fields []FieldError
	// RetryAfter tells when another try makes sense; 0 = not known.
	RetryAfter time.Duration
	// Err is the cause; logged, never shown.
	Err error
}

// What an error of storage may be about, for programs.
const (
	CodeQueueFull   = "queue_full"    // a session has as many messages waiting as it may (ErrRateLimited)
	CodeSearchTime  = "search_time"   // a search took too long (ErrUnavailable)
	CodeLinkExpired = "link_expired"  // a link to a file was good until a while ago (ErrNotFound)
	CodeFileDeleted = "file_deleted"  // a link is good, and its file was deleted (ErrNotFound)
	CodeSlowReader  = "slow_reader"   // a watcher of events is too far behind (ErrUnavailable)
	CodeTooManyRuns = "too_many_runs" // an owner has as many runs as it may (ErrRateLimited)
	CodeNoToolCall  = "no_tool_call"  // no call of a client's tool has that id (ErrNotFound)
	CodeCallDecided = "call_decided"  // a call has another result already, or needs none any more (ErrConflict)
	CodeSessionBusy = "session_busy"  // another request writes to the session; the same one again succeeds later (ErrConflict)
)

// FieldError says what is wrong with one input.
type FieldError struct {
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

// Errorf returns an Error of the kind with a message that may be shown.
func Errorf(kind error, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// ShownMessage returns what may be shown of an error, otherwise of one of which nothing may.
func ShownMessage(err error, otherwise string) string {
	if shown, ok := errors.AsType[*Error](err); ok {
		return shown.Message
	}
	return otherwise
}

// SessionBusy returns the error of a write to a session that another request writes to.
func SessionBusy(id SessionID, why string) *Error {
	return &Error{Kind: ErrConflict, Code: CodeSessionBusy, RetryAfter: 2 * time.Second,
		Message: fmt.Sprintf("session %s is busy: %s; try again in a moment", id, why)}
}

// IsSessionBusy reports whether err is a SessionBusy: the same write may succeed later.
func IsSessionBusy(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == CodeSessionBusy
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the kind and the cause, so that errors.Is finds either.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// MaxFaults bounds how much is said about one request: a body of many megabytes
// may hold a million faults.
const MaxFaults = 20

// Faults collects what is wrong with the inputs of one request, so that its sender
// hears of all of it at once. The zero value is ready; not for concurrent use.
type Faults []FieldError

// Add notes what is wrong with one input, named by its path ("context.policy").
func (f *Faults) Add(field, format string, args ...any) {
	*f = append(*f, FieldError{Field: field, Detail: fmt.Sprintf(format, args...)})
}

// OneFault returns the error of one field.
func OneFault(field, format string, args ...any) error {
	return Faults{{Field: field, Detail: fmt.Sprintf(format, args...)}}.Err()
}

// Err returns the faults, at most the first 20, as one ErrInvalid, or nil if there
// are none.
func (f Faults) Err() error {
	if len(f) == 0 {
		return nil
	}
	f = f[:min(len(f), MaxFaults)]
	words := make([]string, len(f))
	for i, fault := range f {
		words[i] = fault.Field + " " + fault.Detail
	}
	return &Error{Kind: ErrInvalid, Message: strings.Join(words, "; "), Fields: f}
}

// Text returns what is stored of a text that the caller wrote, and complains if it
// has more than most bytes.
func (f *Faults) Text(field, value string, most int) string {
	value = CleanText(value)
	if len(value) > most {
		f.Add(field, "has %d bytes, at most %d are allowed", len(value), most)
	}
	return value
}

// ID complains about an id or a name that has more than most bytes, or that cannot be stored as it is:
// unlike a text it must not be changed.
func (f *Faults) ID(field, value string, most int) {
	if clean := f.Text(field, value, most); clean != value {
		f.Add(field, "must be valid UTF-8 without U+0000")
	}
}

// Metadata complains about anything but nothing or a JSON object of at most most bytes and
// MaxMetadataDepth levels.
func (f *Faults) Metadata(raw json.RawMessage, most int) {
	var object map[string]json.RawMessage
	_, depth := JSONSize(raw)
	switch {
	case len(raw) == 0:
	case len(raw) > most:
		f.Add("metadata", "has %d bytes, at most %d are allowed", len(raw), most)
	case depth > MaxMetadataDepth:
		f.Add("metadata", "is nested more than %d levels deep", MaxMetadataDepth)
	case json.Unmarshal(raw, &object) != nil || object == nil:
		f.Add("metadata", "must be a JSON object")
	}
}

// Feedback returns what is stored of feedback, dated now if it has no date. It complains
// about unknown ratings and long comments; field precedes the names of its members.
func (f *Faults) Feedback(field string, feedback Feedback) *Feedback {
	feedback.Comment = f.Text(field+"comment", feedback.Comment, MaxFeedbackComment)
	switch feedback.Rating {
	case "", RatingUp, RatingDown:
	default:
		f.Add(field+"rating", "must be up or down")
	}
	if feedback.At.IsZero() {
		feedback.At = Now()
	}
	return &feedback
}
