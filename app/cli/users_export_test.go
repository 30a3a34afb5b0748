package cli_test

import (
	"archive/zip"
	"bobbin/tests/must"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// users export writes a whole archive to a file, and no bytes to a terminal or to nowhere.
func TestExportUser(t *testing.T) {
	t.Parallel()
	flags := folder(t)
	file := filepath.Join(t.TempDir(), "ada.zip")
	for _, tt := range []struct {
		code int
		args string
		says string
	}{
		{1, "users export", "which user?"},
		{1, "users export ada", "choose where to write the archive"},
		{0, "api createMemory content=tea user_id=ada", ""},
		{0, "users export ada -o " + file, "bytes in " + file},
		{1, "users export ada --owner web -o " + file, `the owner "web" has no data of the user "ada"`},
		{0, "users export ada -o -", "counts.json"},
	} {
		code, out, errs := run(t, "", append(strings.Fields(tt.args), flags...)...)
		if code != tt.code || !strings.Contains(out+errs, tt.says) {
			t.Errorf("%s: got %d, %q, %q; want %d and %q", tt.args, code, out, errs, tt.code, tt.says)
		}
	}
	archive := must.Get(zip.OpenReader(file))(t)
	defer archive.Close()
	var names []string
	for _, f := range archive.File {
		names = append(names, f.Name)
	}
	if want := []string{"export.json", "messages_elsewhere.jsonl", "memories.jsonl", "files.jsonl", "usage.jsonl", "keys.jsonl", "counts.json"}; !slices.Equal(names, want) {
		t.Errorf("archive has %v, want %v", names, want)
	}
}
