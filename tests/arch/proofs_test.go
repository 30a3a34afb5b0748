package arch_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// promised are the requirements, by their letter: how many there are of each.
// The requirements of the service (S) and of the window (W) included.
var promised = map[string]int{"W": 14, "L": 6, "B": 9, "R": 7, "C": 7, "S": 4}

// rows is how many failures of others the design lists, each with a test of ours.
const rows = 25

// TestProofs: every requirement is named in a test that proves it, and every row of
// the table of failures has a test that is named after it.
func TestProofs(t *testing.T) {
	t.Parallel()
	source := tests(t, "../..")
	for letter, n := range promised {
		for i := 1; i <= n; i++ {
			if name := fmt.Sprintf("%s%d", letter, i); !regexp.MustCompile(`//.*\b` + name + `\b`).MatchString(source) {
				t.Errorf("no test names the requirement %s in a comment", name)
			}
		}
	}
	for i := 1; i <= rows; i++ {
		if !regexp.MustCompile(fmt.Sprintf(`func TestRow0?%d[A-Z]`, i)).MatchString(source) {
			t.Errorf("no test is named after row %d (TestRow%d…)", i, i)
		}
	}
}

// tests returns the text of all tests under root but this one.
func tests(t *testing.T, root string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") || filepath.Base(path) == "proofs_test.go" {
			return err
		}
		text, err := os.ReadFile(path)
		b.Write(text)
		b.WriteByte('\n')
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
