package extract_test

import (
	"os"
	"testing"

	"bobbin/app/extract"
	"bobbin/tests/must"
)

// TestMain makes the test's own program the one that reads documents.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == extract.Command {
		os.Exit(extract.Serve(os.Args[2], os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

// newReader returns a Reader that works as the program's does.
func newReader(t testing.TB) *extract.Reader {
	t.Helper()
	program := must.Get(os.Executable())(t)
	return extract.NewReader(program)
}
