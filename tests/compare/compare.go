// Package compare shows how what a test got differs from what it wants.
package compare

import "github.com/google/go-cmp/cmp"

// TB is what the comparisons use of a test; that of package rapid has it, too.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
}

// Equal fails the test and shows the differences unless want and got are equal, as go-cmp says.
func Equal(t TB, what string, want, got any, opts ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, opts...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
