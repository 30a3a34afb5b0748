package adapters_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"bobbin/tests/must"
)

// keysIn returns what looks like a key in the text.
func keysIn(text []byte) []string {
	var found []string
	for _, like := range []*regexp.Regexp{
		regexp.MustCompile(`\bsk-[A-Za-z0-9_-]{8,}`),
		regexp.MustCompile(`\bAIza[A-Za-z0-9_-]{8,}`),
		regexp.MustCompile(`\bxox[a-z]-[A-Za-z0-9-]{8,}`),
		regexp.MustCompile(`(?i)\bBearer\s+[A-Za-z0-9._~+/-]{8,}`),
	} {
		for _, m := range like.FindAll(text, -1) {
			found = append(found, string(m[:min(len(m), 8)])+"…")
		}
	}
	return found
}

// TestNoKeysInRecordings: no file under any testdata holds something like a key
// (CONVENTIONS: tests).
func TestNoKeysInRecordings(t *testing.T) {
	t.Parallel()
	files := 0
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name := entry.Name(); name == ".git" || name == "node_modules" {
				return filepath.SkipDir
			}
			return nil
		}
		if !slices.Contains(strings.Split(filepath.ToSlash(path), "/"), "testdata") {
			return nil
		}
		files++
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, found := range keysIn(text) {
			t.Errorf("%s holds something like a key: %s", path, found)
		}
		return nil
	})
	must.Do(t, err)
	if files < len(recorded())*2 {
		t.Errorf("got %d files under testdata, want the recordings at least", files)
	}
}

func TestKeysAreSeen(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`"sk-` + `proj-abcdef012345"`, "x-api-key: sk-" + "ant-api03-abcdef", "AI" + "zaSyA0123456789", "xox" + "b-123456789-abc",
		"Authorization: Bearer " + "abcdef.ghijkl",
	} {
		if len(keysIn([]byte(text))) != 1 {
			t.Errorf("got no key in %q, want one", text)
		}
	}
	for _, text := range []string{"a risk-averse-person", "bearer of bad news", "ask-me-anything-now"} {
		if found := keysIn([]byte(text)); len(found) > 0 {
			t.Errorf("got %v in %q, want none", found, text)
		}
	}
}
