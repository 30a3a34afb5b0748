package summarize_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/summarize"
)

// factsOf returns what is extracted of a kind from messages.
func factsOf(kind string, messages ...core.Message) []string {
	var out []string
	for _, f := range summarize.Facts(messages) {
		if f.Kind == kind {
			out = append(out, f.Text)
		}
	}
	return out
}

// What is a path or an address, and what only looks like one.
func TestNamesInText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"src/main.rs and **lib/util.py**, `docs/b.md`":                                                              {"src/main.rs", "lib/util.py", "docs/b.md"},
		"run `go test pkg/x_test.go` twice; Makefile Dockerfile .env go.mod":                                        {"pkg/x_test.go", "Makefile", "Dockerfile", ".env", "go.mod"},
		"app/models/user.rb:42:in `save'":                                                                           {"app/models/user.rb"},
		`Read /etc/hosts, ./run.sh and "app/core/llm/model.go:12:5"; then ~/notes/a.txt.`:                           {"/etc/hosts", "./run.sh", "app/core/llm/model.go", "~/notes/a.txt"},
		`In C:\Users\ann\todo.txt and src\main.cpp; C:\b.txt.`:                                                      {`C:\Users\ann\todo.txt`, `src\main.cpp`, `C:\b.txt`},
		"Öffne /home/jörg/größe.txt und docs/概要.md。":                                                                {"/home/jörg/größe.txt", "docs/概要.md"},
		"a.go b.go, then a.go again":                                                                                {"b.go", "a.go"},
		"and/or he/she km/h 24/7 1/2 3/4/2025 2025/12/04 n/a w/o TCP/IP I/O CI/CD a/b/c Mo/Di/Mi":                   nil,
		"text/html image/png multipart/form-data openai/gpt-4o anthropic/claude-3.5-sonnet @scope/pkg ubuntu:22.04": nil,
		"github.com/gin-gonic/gin e.g. i.e. U.S.A. v1.2.3 3.14 10.0.0.1 192.168.1.0/24 ::1 /help s/foo/bar/":        nil,
		"ann@example.com ../.. ./ ~ // /* c */ </div> <br/> \\n \\d+ file:///x":                                     nil,
	} {
		if got := factsOf(summarize.FactPath, user(1, text)); !slices.Equal(got, want) {
			t.Errorf("%s\ngot  %q\nwant %q", text, got, want)
		}
	}
	text := "See https://example.com/a?b=c#d, (http://en.wikipedia.org/wiki/Go_(game)) and <ftp://x.org/f.tar>. Not file:///x or ://. 见 https://x.org/中文。"
	want := []string{"https://example.com/a?b=c#d", "http://en.wikipedia.org/wiki/Go_(game)", "ftp://x.org/f.tar", "https://x.org/中文"}
	if got := factsOf(summarize.FactURL, user(1, text)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := factsOf(summarize.FactURL, toolResult(1, "x", text)); got != nil {
		t.Errorf("got %q from a tool's result, want nothing: it may be an order", got)
	}
}

// Commands as tools take them.
func TestCommandsOfTools(t *testing.T) {
	t.Parallel()
	for arguments, want := range map[string][]string{
		`{"command":"git","args":["status","-s"]}`:                        {"git status -s"},
		`{"argv":["kubectl","get","pods"]}`:                               {"kubectl get pods"},
		`{"cmd":"make test","cwd":"/repo"}`:                               {"make test"},
		`{"path":"a.sh","content":"#!/bin/sh\n$ not a command\nexit 1"}`:  nil,
		`{"action":{"type":"exec","command":["bash","-lc","ls -la /x"]}}`: {"bash -lc ls -la /x"},
		`{"query":"how to run make"}`:                                     nil,
	} {
		m := assistant(1, "", core.ToolCall{ID: "c", Name: "run", Arguments: arguments})
		if got := factsOf(summarize.FactCommand, m); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", arguments, got, want)
		}
	}
}

// The errors of a call are those that its result calls so, and the lines with errors or places of one
// that failed. What else a tool prints, and what people write about errors, is none.
func TestErrorsOfTools(t *testing.T) {
	t.Parallel()
	failed := func(text string) core.Message {
		m := toolResult(1, "x", text)
		m.Status = core.MessageFailed
		return m
	}
	for name, tt := range map[string]struct {
		message core.Message
		want    []string
	}{
		"named":           {toolResult(1, "x", `{"error":"quota used up","detail":{"items":[1,null,"x"]}}`), []string{"quota used up"}},
		"none":            {toolResult(1, "x", `{"error":null,"errors":[]}`), nil},
		"exit code":       {toolResult(1, "x", "ok\nvet: bad\na.go:3:1: undefined: x\nTypeError: y\nexit status 1"), []string{"a.go:3:1: undefined: x", "TypeError: y"}},
		"in JSON":         {toolResult(1, "x", `{"stderr":"fatal: no remote\n","exit_code":128}`), []string{"fatal: no remote"}},
		"it ended well":   {toolResult(1, "x", "Error: is what the page says\nexit status 0"), nil},
		"no exit code":    {toolResult(1, "x", "Error: is what the page says"), nil},
		"a failed call":   {failed("timed out after 30 s"), []string{"timed out after 30 s"}},
		"a long listing":  {failed(strings.Repeat("error: a\nerror: b\nerror: c\nerror: d\n", 9)), []string{"error: a", "error: b", "error: c"}},
		"said by people":  {user(1, "It says\nError: no such table"), nil},
		"said by a model": {assistant(1, "panic: x"), nil},
	} {
		if got := factsOf(summarize.FactError, tt.message); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

// Facts are those of the ledger, once each, in the order in which they were said last.
func TestFacts(t *testing.T) {
	t.Parallel()
	got := summarize.Facts([]core.Message{
		user(1, "Look at go.mod and main.go, see https://go.dev/ref/mod"),
		assistant(2, "", core.ToolCall{ID: "c", Name: "run", Arguments: `{"command":"go  build ./..."}`}, core.ToolCall{ID: "d", Name: "open", Arguments: `{"path":"C:\\Program Files\\App\\app.exe"}`},
			core.ToolCall{ID: "e", Name: "open", Arguments: `{"path": "app/x.go`}),
		{Role: core.RoleTool, Seq: 3, ToolCallID: "c", Content: "main.go:3:1: error: expected declaration\nERROR: " + strings.Repeat("very ", 100) + "long\nexit code: 2"},
		{Role: core.RoleSystem, Seq: 4, Content: "secret.go"},
	})
	want := []summarize.Fact{
		{Kind: summarize.FactPath, Text: "go.mod"},
		{Kind: summarize.FactPath, Text: `C:\Program Files\App\app.exe`},
		{Kind: summarize.FactPath, Text: "app/x.go"},
		{Kind: summarize.FactPath, Text: "main.go"},
		{Kind: summarize.FactCommand, Text: "go build ./..."},
		{Kind: summarize.FactError, Text: "main.go:3:1: error: expected declaration"},
		{Kind: summarize.FactURL, Text: "https://go.dev/ref/mod"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
	if got := summarize.Facts(nil); len(got) != 0 {
		t.Errorf("got %v of nothing, want none", got)
	}
}
