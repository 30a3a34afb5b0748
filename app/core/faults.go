package core

import (
	"encoding/json"
	"fmt"
	"strings"
)

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
