package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
	if info, err := os.Stat(file + "2"); code != 0 || err != nil || fields(t, out)["bytes"] != float64(info.Size()) {
		t.Errorf("as JSON: got %d, %q, %q, %v", code, out, errs, err)
	}
	if code, _, errs := run(t, "", append([]string{"backup", file}, flags...)...); code != 1 || !strings.Contains(errs, "exists") {
		t.Errorf("over a file: got %d, %q", code, errs)
	}
}
