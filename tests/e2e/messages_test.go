package e2e_test

import (
	"errors"
	"strings"
	"testing"

	"bobbin/app/client"
)

// wantProblem wants an error of the kind and status with the words in it.
func wantProblem(t testing.TB, err error, kind error, status int, words string) {
	t.Helper()
	var problem *client.ProblemError
	if !errors.As(err, &problem) || !errors.Is(err, kind) || problem.Status != status || !strings.Contains(err.Error(), words) {
		t.Errorf("got the error %v, want %v (%d) with %q in it", err, kind, status, words)
	}
}
