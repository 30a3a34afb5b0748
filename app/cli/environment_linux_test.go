package cli_test

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Tools that a command starts do not read its environment: no other program of its user does. Not
// parallel: other tests' commands would hide it, too.
func TestEnvironmentIsHidden(t *testing.T) { //nolint:paralleltest // see above
	if code, _, errs := run(t, "", "version"); code != 0 || errs != "" {
		t.Fatalf("got %d, %q", code, errs)
	}
	if dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); dumpable != 0 || err != nil {
		t.Errorf("got %d, %v, want a process that others do not read", dumpable, err)
	}
}
