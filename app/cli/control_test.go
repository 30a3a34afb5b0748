package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
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

// For scripts and people: the context, the prompt, a dry run, a message.
func TestContextCommands(t *testing.T) {
	t.Parallel()
	id, do := talked(t)
	for _, tt := range []struct {
		args []string
		says []string
	}{
		{[]string{"context", id}, []string{"demo · policy window", " more turns until then, at the current rate", "0 lost", "summaries: normal", "summary v1: "}},
		{[]string{"context", id, "--json"}, []string{`"turns_left": `, `"will_trigger": false`, `"coverage": {`}},
		{[]string{"context", "prompt", id}, []string{"── system", "Summary of earlier conversation:", "── user · ", "── tools"}},
		{[]string{"context", "prompt", id, "--json"}, []string{`"system": [`}},
		{[]string{"context", "plan", id}, []string{"it fits: the prompt has "}},
		{[]string{"context", "plan", id, "--policy", "budget", "--content", "and then?"}, []string{"it fits: the prompt has ", "policy budget", "15 messages: "}},
		{[]string{"context", "plan", id, "--model", "demo", "--json"}, []string{`"fits": true`, `"context": {`}},
		{[]string{"context", "message", id, "1"}, []string{"#1 user: summarized", "my dog is called Rex", "0 in the prompt"}},
		{[]string{"context", "message", id, "1", "--json"}, []string{`"placement": "covered"`, `"summary_version": 1`}},
	} {
		out, _ := do(0, "", tt.args...)
		for _, want := range tt.says {
			if !strings.Contains(out, want) {
				t.Errorf("%q: no %q in\n%s", tt.args, want, out)
			}
		}
	}
	if out, _ := do(0, strings.Repeat("many words are said here ", 800), "context", "plan", id, "--file", "-", "--policy", "sliding"); !strings.Contains(out, "policy sliding") || !strings.Contains(out, "  R run") {
		t.Errorf("plan of the standard input: %s", out)
	}
	for _, tt := range []struct {
		args []string
		says string
	}{
		{[]string{"context"}, "which session? bobbin context <id>"},
		{[]string{"context", "message", id}, "which message? bobbin context message <id> <message>"},
		{[]string{"context", "message", id, "999"}, "message #999 does not exist"},
		{[]string{"context", "plan", id, "--policy", "wimdow"}, "did you mean window?"},
		{[]string{"context", "plan", id, "--file", "no such file"}, "--file: "},
	} {
		if _, errs := do(1, "", tt.args...); !strings.Contains(errs, tt.says) {
			t.Errorf("%q: got %q, want %q", tt.args, errs, tt.says)
		}
	}
}

// The summary of a session for scripts and people: shown, compared, edited, taken back.
func TestSummaryCommands(t *testing.T) {
	id, do := talked(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "words.md")
	if err := os.WriteFile(file, []byte("Rex is a dog.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	editor := filepath.Join(dir, "editor")
	if err := os.WriteFile(editor, []byte("#!/bin/sh\necho 'Bello is a dog, too.' >> \"$2\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("VISUAL", "")
	t.Setenv("EDITOR", editor+" -w")
	for _, tt := range []struct {
		input string
		args  string
		says  string
	}{
		{"", "summary show", "summary v1: "},
		{"", "summary show 1 --json", `"strategy": "hybrid"`},
		{"", "summary edit --file " + file, "version 2: "},
		{"Rex is a dog.", "summary edit", "version 2 already has this text"},
		{"", "summary diff", "+ Rex is a dog."},
		{"", "summary diff 1 --against 0", "version 1 compared to an empty summary: "},
		{"", "summary diff 2 --against 1 --json", `"op": "removed"`},
		{"Rex was a dog.", "summary edit --version 2 --json", `"version": 3`},
		{"", "summary list", "summary v3: "},
		{"", "summary list --limit 1", "--cursor "},
		{"", "summary undo", "restored version 2 as version 4: "},
		{"", "summary restore 0", "no active summary: "},
		{"", "summary restore v4 --json", `"summary_version": 5`},
		{"", "summary undo --json", `"summary_version": 0`},
	} {
		words := strings.Fields(tt.args)
		args := append([]string{words[0], words[1], id}, words[2:]...)
		if out, _ := do(0, tt.input, args...); !strings.Contains(out, tt.says) {
			t.Errorf("%s: no %q in\n%s", tt.args, tt.says, out)
		}
	}
	for _, tt := range []struct{ input, args, says string }{
		{"", "summary show", "this session has no active summary"},
		{"", "summary show x", "is not a version"},
		{"", "summary restore", "which version? bobbin summary restore <id> <version>"},
		{"", "summary restore 77", "version 77"},
		{"", "summary undo", "there is no summary to undo"},
		{"", "summary diff 2 --against -3", "--against"},
		{"words", "summary edit", "no active summary"},
	} {
		words := strings.Fields(tt.args)
		args := append([]string{words[0], words[1], id}, words[2:]...)
		if _, errs := do(1, tt.input, args...); !strings.Contains(errs, tt.says) {
			t.Errorf("%s: got %q, want %q", tt.args, errs, tt.says)
		}
	}
	do(0, "", "summary", "restore", id, "5")
	if _, errs := do(1, "late", "summary", "edit", id, "--version", "2"); !strings.Contains(errs, "version 2 is no longer in use") {
		t.Errorf("an edit of an old version: %q", errs)
	}
}
