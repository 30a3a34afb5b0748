// Package compare shows how what a test got differs from what it wants.
package compare

import (
	"errors"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// TB is what the comparisons use of a test; that of package rapid has it, too.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
}

// Equal fails the test and shows the differences unless want and got are equal, as go-cmp says.
func Equal[T any](t TB, what string, want, got T, opts ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, opts...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// True fails the test with the message unless what it says holds.
func True(t TB, ok bool, format string, args ...any) {
	t.Helper()
	if !ok {
		t.Errorf(format, args...)
	}
}

// Error fails the test unless got is the error that it wants, or wraps it.
func Error(t TB, what string, want, got error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: got error %v, want %v", what, got, want)
	}
}

// ErrorOf returns the error of a call that returns a value, too: Error(t, what, want, ErrorOf(call())).
func ErrorOf[T any](_ T, err error) error { return err }

// Lacks fails the test if the text has one of the parts.
func Lacks(t TB, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("%s: got %q in %.600q", what, part, text)
		}
	}
}

// Contains fails the test unless the text has the part.
func Contains(t TB, what, part, text string) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%s: got %q, want %q in it", what, text, part)
	}
}
