package cli_test

import (
	"bobbin/tests/must"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// asking is a server with an agent that asks before it calculates; do calls the program
// on it, and ask lets a run wait and returns its session and itself.
func asking(t *testing.T) (do func(wantCode int, args ...string) string, ask func(question string) (session, id string)) {
	t.Helper()
	flags := folder(t)
	dir := flags[slices.Index(flags, "--agents-dir")+1]
	agent := "name: careful\nsystem_prompt: You ask.\ntools: [calculator]\ntool_settings:\n  calculator: {approval: always}\n"
	must.Do(t, os.MkdirAll(dir, 0o700))
	must.Do(t, os.WriteFile(filepath.Join(dir, "careful.yaml"), []byte(agent), 0o600))
	t.Cleanup(serve(t, flags))
	call := func(wantCode int, input string, args ...string) string {
		t.Helper()
		code, out, errs := run(t, input, append(args, flags...)...)
		if code != wantCode {
			t.Fatalf("%q: got %d, %q, %q; want %d", args, code, out, errs, wantCode)
		}
		return out + errs
	}
	do = func(wantCode int, args ...string) string { return call(wantCode, "", args...) }
	first := regexp.MustCompile(`(?m)^[0-9a-f-]{36}`)
	ask = func(question string) (session, id string) {
		t.Helper()
		call(1, question+"\n", "chat", "careful") // nobody answers
		session = first.FindString(do(0, "sessions", "list"))
		return session, first.FindString(do(0, "runs", "list", session))
	}
	return do, ask
}

// What is agreed to is shown whole, before it is agreed to.
func TestRunsShowWholeArguments(t *testing.T) {
	t.Parallel()
	do, ask := asking(t)
	sum := strings.Repeat("1 + ", 60) + "40"
	_, id := ask("What is " + sum + "?")
	if got := do(1, "runs", "deny", id, "01a1fd1b-c2ab-74fe-af4a-73c58ae3b243"); !strings.Contains(got, "does not exist") {
		t.Errorf("deny another call: got %q", got)
	}
	if got := do(0, "runs", "show", id); !strings.Contains(got, sum) {
		t.Errorf("runs show: got %q, want the whole of %s", got, sum)
	}
	got := do(0, "runs", "approve", id)
	if shown, agreed := strings.Index(got, sum), strings.Index(got, "approved: calculator"); shown < 0 || agreed < shown {
		t.Errorf("runs approve: got %q, want the whole of %s before it is approved", got, sum)
	}
}
