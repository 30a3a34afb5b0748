package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fields are the names of a JSON object's fields.
func fields(t *testing.T, text string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%q is no JSON object: %v", text, err)
	}
	return v
}

// Every check says what to do, and a failed one ends with 1.
func TestDoctor(t *testing.T) {
	t.Parallel()
	flags := append(folder(t), "--addr", "127.0.0.1:0")
	code, out, errs := run(t, "", append([]string{"doctor"}, flags...)...)
	if code != 0 || errs != "" || !strings.Contains(out, "warn  model: demo") || !strings.Contains(out, "→ set OPENAI_API_KEY") || !strings.Contains(out, "it works") {
		t.Errorf("before the first start: %d, %q, %q", code, out, errs)
	}
	if code, _, errs := run(t, "hello", append([]string{"chat"}, flags...)...); code != 0 {
		t.Fatal(errs)
	}
	data := flags[3]
	if err := os.Chmod(data, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(flags[5], 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(flags[5], "bad.yaml"), []byte("nme: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs = run(t, "", append([]string{"doctor"}, flags...)...)
	for _, says := range []string{"ok    database", "sound", "ok    migrations: version", "chmod 700 " + data, "fail  agents: ", "bad.yaml:1", "something does not work"} {
		if !strings.Contains(out, says) {
			t.Errorf("doctor does not say %q: %s", says, out)
		}
	}
	if code != 1 || errs != "" {
		t.Errorf("a failed check: got %d, %q, want 1 and nothing besides the report", code, errs)
	}
	// A damaged file is found.
	if err := os.WriteFile(filepath.Join(data, "bobbin.db"), []byte(strings.Repeat("this is no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, _ = run(t, "", append([]string{"doctor", "--json"}, flags...)...)
	if code != 1 || fields(t, out)["status"] != "fail" || !strings.Contains(out, `"check": "database"`) {
		t.Errorf("a damaged database: %d, %s", code, out)
	}
}

func TestDoctorOfWrongSettings(t *testing.T) {
	t.Parallel()
	code, out, errs := run(t, "", append([]string{"doctor", "--log-level", "loud"}, folder(t)...)...)
	if code != 1 || errs != "" || !strings.Contains(out, "fail  configuration: --log-level: log.level") {
		t.Errorf("got %d, %q, %q", code, out, errs)
	}
}
