// Package must ends a test when a call fails that the test only needs.
package must

import "testing"

// Get returns what a call returned that must not fail: Get(call())(t).
func Get[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Do(t, err)
		return v
	}
}

// Do ends the test on an error.
func Do(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Get2 is Get for a call that returns two values.
func Get2[T, U any](v T, w U, err error) func(testing.TB) (T, U) {
	return func(t testing.TB) (T, U) {
		t.Helper()
		Do(t, err)
		return v, w
	}
}

// TB is what True uses of a test; that of package rapid has it, too.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
}

// True ends the test with the message unless what it says holds.
func True(t TB, ok bool, format string, args ...any) {
	t.Helper()
	if !ok {
		t.Fatalf(format, args...)
	}
}
