package llm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"

	"bobbin/app/core"
)

// ErrorKind classifies failed model calls.
type ErrorKind string

// The kinds of errors.
const (
	KindRateLimit     ErrorKind = "rate_limit"
	KindContextLength ErrorKind = "context_length" // the prompt and the answer do not fit the window
	KindAuth          ErrorKind = "auth"           // the key is wrong, or its account may not or has no credit left
	KindTimeout       ErrorKind = "timeout"
	KindOverloaded    ErrorKind = "overloaded" // the provider is busy or broken: 5xx, 529
	KindCanceled      ErrorKind = "canceled"   // by our own context
	KindInvalid       ErrorKind = "invalid"    // the provider does not accept the request
	KindNotFound      ErrorKind = "not_found"  // no such model, or no API at the address
	KindNetwork       ErrorKind = "network"    // the provider was not reached
	KindTruncated     ErrorKind = "truncated"  // the stream broke off
	KindContentFilter ErrorKind = "content_filter"
	KindEmpty         ErrorKind = "empty"        // the answer ended in order and there was nothing in it
	KindOutputLimit   ErrorKind = "output_limit" // the answer reached its limit of tokens before its first word
	// KindCompactionRefused: the provider does not take back the compaction with which the prompt begins.
	KindCompactionRefused ErrorKind = "compaction_refused"
	// KindToolChangesRefused: the provider does not take messages that add or remove tools.
	KindToolChangesRefused ErrorKind = "tool_changes_refused"
	KindUnknown            ErrorKind = "unknown"
)

// Error is a failed model call. Message is safe to log; it may hold what the
// provider reported, without secrets. Words returns what users may see of it.
type Error struct {
	Kind       ErrorKind
	Unclear    bool // with KindInvalid: the provider does not report the cause; the prompt may be too long
	Message    string
	Provider   string
	Status     int           // HTTP status; 0 = none
	Code       string        // the provider's own code
	RetryAfter time.Duration // 0 = not reported
	Limit      int           // with KindContextLength: the real limit in tokens; 0 = not reported
	Requested  int           // with KindContextLength: what the provider counted, with the requested answer if it counts that; 0 = not reported
	Prompt     int           // with KindContextLength: of Requested, the prompt alone; 0 = not reported
	Err        error
}

// Error returns the provider, the kind and the message.
func (e *Error) Error() string { return fmt.Sprintf("%s: %s: %s", e.Provider, e.Kind, e.Message) }

// Unwrap returns the cause and the kind as core knows it.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{core.ErrModel}
	}
	return []error{core.ErrModel, e.Err}
}

// Words returns the provider's message about a refused request, as users may see it;
// empty for other failures, which only the operator can solve.
func (e *Error) Words() string {
	switch e.Kind {
	case KindInvalid, KindContextLength, KindContentFilter, KindNotFound:
		if e.Status >= 300 {
			// One line, without control characters.
			text := strings.Join(strings.FieldsFunc(e.Message, func(r rune) bool {
				return unicode.IsSpace(r) || !unicode.IsGraphic(r) || unicode.Is(unicode.Cf, r)
			}), " ")
			if len(text) <= maxWords {
				return text
			}
			return core.Clip(text, maxWords) + "…"
		}
	}
	return ""
}

// maxWords bounds what users see of a provider's words, in bytes.
const maxWords = 400

// Retryable reports whether the same request may succeed later.
func (e *Error) Retryable() bool {
	return slices.Contains([]ErrorKind{KindRateLimit, KindOverloaded, KindNetwork, KindTruncated, KindTimeout}, e.Kind)
}

// CanceledError returns the error of a call that ended because ctx is done. It
// wraps both ctx.Err() and context.Cause(ctx); a passed deadline of ctx is a
// cancellation too; errors.Is(err, context.DeadlineExceeded) distinguishes it.
func CanceledError(ctx context.Context, provider string) *Error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if err = errors.Join(err, cause); errors.Is(cause, ctx.Err()) {
		err = cause
	}
	return &Error{Kind: KindCanceled, Message: cause.Error(), Provider: provider, Err: err}
}

// AsError returns the *Error in err's chain, or nil.
func AsError(err error) *Error {
	e, _ := errors.AsType[*Error](err)
	return e
}

// IsKind reports whether err is an *Error of the kind.
func IsKind(err error, kind ErrorKind) bool {
	e := AsError(err)
	return e != nil && e.Kind == kind
}

// ToolChanges says how the tools of a conversation may change while its prompt begins as before.
type ToolChanges string

// The ways.
const (
	ToolsFixed      ToolChanges = ""        // not at all
	ToolsAdded      ToolChanges = "add"     // system messages add tools, of names that no tool had before
	ToolsChangeable ToolChanges = "replace" // they also remove tools, and put others in their place
)

// ClassifyRefusal returns the error of the request, with KindToolChangesRefused if the provider refused
// what adds and removes tools in it: the account or the model does not know that.
func (r Request) ClassifyRefusal(e *Error) *Error {
	changes := func(m Message) bool { return len(m.AddedTools)+len(m.RemovedTools) > 0 }
	if e == nil || e.Kind != KindInvalid || e.Status != http.StatusBadRequest || !slices.ContainsFunc(r.Messages, changes) {
		return e
	}
	for _, name := range []string{"tool_addition", "tool_removal", "tool_definition", "inline-tools", "mid-conversation-tool-changes", "additional_tools"} {
		if strings.Contains(e.Message, name) {
			return e.WithKind(KindToolChangesRefused)
		}
	}
	return e
}

// WithKind returns the refusal of a prompt as one of another kind.
func (e *Error) WithKind(kind ErrorKind) *Error {
	refused := *e
	refused.Kind, refused.Unclear = kind, false
	return &refused
}
