package tools_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// command returns the tool of a script in a folder of its own.
func command(t *testing.T, script string, d core.ToolDefinition) *tools.Custom {
	t.Helper()
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "tool.sh"), []byte("#!/bin/sh\n"+script), 0o755))
	d.Name, d.Kind, d.Command, d.File = "x", core.ToolCommand, "./tool.sh", filepath.Join(dir, "x.yaml")
	return must.Get(tools.NewCommand(d, tools.Command{Env: environment, MaxBytes: 10_000}))(t)
}

// A command gets the arguments as JSON on its standard input, and nothing of our environment that the
// definition does not list.
func TestCommand(t *testing.T) {
	t.Setenv("BOBBIN_SECRET", "do not tell")
	tool := command(t, `cat; echo "$1|$2"; env | sort; pwd; test "$TOKEN" = s3cret-token-4711 || exit 1`, core.ToolDefinition{
		Args: []string{"a b", "$HOME;*"}, Env: []string{"TOKEN", "MODE=x y"}, Parameters: schemaOf("q"),
	})
	got := must.Get(callTool(t, tool, `{"q":"it's; $(x)"}`))(t)
	lines := strings.Split(strings.TrimSpace(got), "\n")
	want := []string{`{"q":"it's; $(x)"}`, "a b|$HOME;*", "MODE=x y", "PWD=", "TOKEN=***"} // it had the secret
	if len(lines) < 5 || lines[0] != want[0] || lines[1] != want[1] || strings.Contains(got, "BOBBIN_SECRET") || strings.Contains(got, "HOME=") {
		t.Fatalf("got\n%s", got)
	}
	for _, line := range want {
		compare.Contains(t, "line of the result", line, got)
	}
	compare.Equal(t, "approval, idempotent", []any{core.ApprovalAlways, false}, []any{tool.Approval, tool.Repeatable})
}

// What goes wrong with a command is an error in bounds.
func TestCommandFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ script, want string }{
		"an exit code": {"echo partly; echo no such city >&2; exit 3", "the program failed: exit status 3\nno such city\npartly"},
		"a signal":     {"kill -9 $$", "the program failed: signal: killed"},
		"a flood":      {"while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done", "the program wrote more than 10 KB and was stopped; ask for less"},
		"long errors":  {"i=0; while [ $i -lt 3000 ]; do echo 0123456789 >&2; i=$((i+1)); done; exit 1", "the program failed: exit status 1\n0123456789"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := callTool(t, command(t, c.script, core.ToolDefinition{}), "")
			compare.True(t, err != nil && strings.HasPrefix(err.Error(), c.want) && len(err.Error()) <= 10_000, "got %.300v, want %s", err, c.want)
		})
	}
	tool := command(t, "", core.ToolDefinition{Env: []string{"NONE"}})
	if _, err := callTool(t, tool, ""); err == nil || err.Error() != "the tool is not set up: the environment variable NONE is not set" {
		t.Errorf("got %v", err)
	}
	d := core.ToolDefinition{Name: "x", Command: "no-such-program"}
	gone := must.Get(tools.NewCommand(d, tools.Command{Env: environment, MaxBytes: 10}))(t)
	if _, err := callTool(t, gone, ""); err == nil || err.Error() != "the program no-such-program is not installed, or cannot be executed" {
		t.Errorf("got %v", err)
	}
}

// A command that is canceled ends with everything that it has started.
func TestCommandIsCanceled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pid := filepath.Join(dir, "pid")
	tool := command(t, fmt.Sprintf("sleep 1000 & echo $! > %s.tmp; mv %s.tmp %s; wait", pid, pid, pid), core.ToolDefinition{Env: []string{"PATH"}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := tool.Call(ctx, tools.Call{})
		done <- err
	}()
	child := ""
	for child == "" {
		if text, err := os.ReadFile(pid); err == nil {
			child = strings.TrimSpace(string(text))
		}
	}
	cancel()
	compare.Error(t, "<-done", context.Canceled, <-done)
	for deadline := time.Now().Add(2 * time.Minute); ; {
		state, err := os.ReadFile("/proc/" + child + "/stat")
		if err != nil || strings.Contains(string(state), ") Z ") {
			break
		}
		must.True(t, !time.Now().After(deadline), "the child %s is still there: %s", child, state)
	}
}
