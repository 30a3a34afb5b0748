package cli_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// talked is a folder with a session of several turns; do calls the program on it.
func talked(t *testing.T) (id string, do func(wantCode int, input string, args ...string) (out, errs string)) {
	t.Helper()
	flags := folder(t)
	do = func(wantCode int, input string, args ...string) (out, errs string) {
		t.Helper()
		code, out, errs := run(t, input, append(args, flags...)...)
		if code != wantCode {
			t.Fatalf("%q: got %d, %q, %q; want %d", args, code, out, errs, wantCode)
		}
		return out, errs
	}
	input := "my dog is called Rex\n/why dog\n"
	for i := range 6 {
		input += fmt.Sprintf("note %d: the pump in hall three reported a deviation of %d microns again\n", i, 40+i)
	}
	out, _ := do(0, input+"/summarize\n/why Rex\n/summary\n", "chat", "-")
	for _, want := range []string{"#1 user: in the prompt verbatim", "#1 user: summarized", "Version 1 of the summary covers it", "## "} {
		if !strings.Contains(out, want) {
			t.Errorf("chat: no %q in\n%s", want, out)
		}
	}
	list, _ := do(0, "", "sessions", "list")
	return regexp.MustCompile(`(?m)^\S{36}`).FindString(list), do
}

// For scripts and people: the context, and by operations of the API the prompt, a dry run, a message.
func TestContextCommands(t *testing.T) {
	t.Parallel()
	id, do := talked(t)
	for _, tt := range []struct {
		args []string
		says []string
	}{
		{[]string{"context", id}, []string{"demo · policy window", " more turns until then, at the current rate", "0 lost", "summaries: normal", "summary v1: "}},
		{[]string{"api", "getPrompt", "id=" + id}, []string{`"system": [`}},
		{[]string{"api", "planContext", "id=" + id, "policy=budget", "content=and then?"}, []string{`"fits": true`, `"policy": "budget"`}},
		{[]string{"context", id, "--json"}, []string{`"turns_left": `, `"will_trigger": false`, `"coverage": {`}},
	} {
		out, _ := do(0, "", tt.args...)
		for _, want := range tt.says {
			if !strings.Contains(out, want) {
				t.Errorf("%q: no %q in\n%s", tt.args, want, out)
			}
		}
	}
	for _, tt := range []struct {
		args []string
		says string
	}{
		{[]string{"context"}, "which session? bobbin context <id>"},
		{[]string{"api", "planContext", "id=" + id, "policy=wimdow"}, "did you mean window?"},
	} {
		if _, errs := do(1, "", tt.args...); !strings.Contains(errs, tt.says) {
			t.Errorf("%q: got %q, want %q", tt.args, errs, tt.says)
		}
	}
}

// The summary of a session for scripts and people: shown and taken back, and by operations of the API edited, compared and restored.
func TestSummaryCommands(t *testing.T) {
	t.Parallel()
	id, do := talked(t)
	for _, tt := range []struct {
		args string
		says string
	}{
		{"summary show ID", "summary v1: "},
		{"summary show ID 1 --json", `"strategy": "hybrid"`},
		{"api editSummary id=ID content=Rex", `"version": 2`},
		{"api diffSummary id=ID version=2", `"op": "removed"`},
		{"summary list ID", "summary v2: "},
		{"summary list ID --limit 1", "--cursor "},
		{"summary undo ID", "restored version 1 as version 3: "},
		{"api restoreSummary id=ID version=0", `"summary_version": 0`},
		{"api restoreSummary id=ID version=3", `"summary_version": 4`},
		{"summary undo ID --json", `"summary_version": 0`},
	} {
		if out, _ := do(0, "", strings.Fields(strings.ReplaceAll(tt.args, "ID", id))...); !strings.Contains(out, tt.says) {
			t.Errorf("%s: no %q in\n%s", tt.args, tt.says, out)
		}
	}
	for _, tt := range []struct{ args, says string }{
		{"summary show ID", "this session has no active summary"},
		{"summary show ID x", "is not a version"},
		{"summary undo ID", "there is no summary to undo"},
		{"api restoreSummary id=ID", "restoreSummary needs version=…"},
	} {
		if _, errs := do(1, "", strings.Fields(strings.ReplaceAll(tt.args, "ID", id))...); !strings.Contains(errs, tt.says) {
			t.Errorf("%s: got %q, want %q", tt.args, errs, tt.says)
		}
	}
}
