package chat_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/tests/must"
)

// A file goes with the next message that is accepted, and with none after it.
func TestAttach(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	note, empty := filepath.Join(dir, "my note.txt"), filepath.Join(dir, "empty")
	for name, content := range map[string]string{note: "hello", empty: ""} {
		must.Do(t, os.WriteFile(name, []byte(content), 0o600))
	}
	f := &fake{send: events(event(t, core.EventRunStarted, core.RunData{}))}
	c, out := conversation(f, nil, "/attach", "/attach "+note, `/attach "`+note+`"`, "/attach", "/attach "+empty,
		"/attach "+dir, "/attach /no/such file", "look", "and now?", "/atach x")
	must.Do(t, c.Run(t.Context()))
	want := []string{
		"upload my note.txt hello", `upload my note.txt hello`, "upload empty ", "create a",
		"send new look +blob my note.txt +blob my note.txt", "send new and now?",
	}
	if diff := cmp.Diff(want, f.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	for _, words := range []string{
		"! nothing is attached; use /attach <path>", `· attached to the next message: file "my note.txt", text/plain, 5 bytes`,
		"· attached to the next message: file", "it is empty", "is a folder", "file not found: /no/such file", "did you mean /attach?",
	} {
		if !strings.Contains(strings.ToLower(out.String()), strings.ToLower(words)) {
			t.Errorf("got\n%s\nwant %q in it", out, words)
		}
	}
}
