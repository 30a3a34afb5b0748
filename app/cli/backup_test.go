package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A backup is whole and checked, for its owner only, writes over nothing, and leaves nothing behind where it fails.
func TestBackup(t *testing.T) {
	t.Parallel()
	flags := append(folder(t), "--addr", "127.0.0.1:0")
	file := filepath.Join(t.TempDir(), "copy.db")
	if code, _, errs := run(t, "", append([]string{"backup", file}, flags...)...); code != 1 || !strings.Contains(errs, "there is no database to copy") {
		t.Errorf("before the first start: got %d, %q", code, errs)
	}
	if code, _, errs := run(t, "", append([]string{"migrate"}, flags...)...); code != 0 {
		t.Fatal(errs)
	}
	if code, out, errs := run(t, "", append([]string{"backup", file}, flags...)...); code != 0 || !strings.Contains(out, "verified, schema version") {
		t.Errorf("got %d, %q, %q", code, out, errs)
	}
	code, out, errs := run(t, "", append([]string{"backup", file + "2", "--json"}, flags...)...)
	if info, err := os.Stat(file + "2"); code != 0 || err != nil || info.Mode().Perm() != 0o600 || fields(t, out)["bytes"] != float64(info.Size()) {
		t.Errorf("as JSON: got %d, %q, %q, %v", code, out, errs, err)
	}
	for name, why := range map[string]string{file: "exists", filepath.Join(filepath.Dir(file), "nowhere", "copy.db"): ""} {
		if code, _, errs := run(t, "", append([]string{"backup", name}, flags...)...); code != 1 || !strings.Contains(errs, why) {
			t.Errorf("%s: got %d, %q, want a failure with %q", name, code, errs, why)
		}
	}
	entries, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(entries) != 2 {
		t.Errorf("left behind: %v, %v, want the two backups alone", entries, err)
	}
}
