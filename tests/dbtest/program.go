package dbtest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"bobbin/tests/must"
)

// Program returns the path of one of PostgreSQL's programs, such as pg_dump. Where it
// is not installed the test is skipped, unless PostgreSQL is required.
func Program(t testing.TB, name string) string {
	t.Helper()
	if bin, err := findPrograms(); err == nil {
		if path := filepath.Join(bin, name); isExecutable(path) {
			return path
		}
	}
	path, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrNotFound) && !strings.Contains(os.Getenv(requireVariable), "postgres") {
		t.Skipf("%s is not installed: it comes with PostgreSQL", name)
	}
	must.Do(t, err)
	return path
}

func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}
