package summarize_test

import (
	"slices"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/summarize"
)

// factsOf returns what is extracted of a kind from one message.
func factsOf(m core.Message, kind string) []string {
	var out []string
	for _, f := range summarize.Facts([]core.Message{m}) {
		if f.Kind == kind {
			out = append(out, f.Text)
		}
	}
	return out
}

// What is a path and what only looks like one.
func TestPathsAndWhatLooksLikeThem(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"src/main.rs and **lib/util.py**, `docs/a b.md`":                                                                  {"docs/a b.md", "src/main.rs", "lib/util.py"},
		"open \"My Files/Report (final).pdf\" now":                                                                        {"My Files/Report (final).pdf"},
		"run `go test pkg/x_test.go` twice":                                                                               {"pkg/x_test.go"},
		"*.go src/**/*.ts and data/*.csv":                                                                                 {"src/**/*.ts", "data/*.csv"},
		"Makefile Dockerfile .env .env.local go.mod":                                                                      {"Makefile", "Dockerfile", ".env", ".env.local", "go.mod"},
		"app/models/user.rb:42:in `save'":                                                                                 {"app/models/user.rb"},
		"main.go, then cmd/x/main.go":                                                                                     {"cmd/x/main.go"},
		"cmd/x/main.go, then main.go":                                                                                     {"cmd/x/main.go"},
		"D:\\My Files\\a.txt and C:\\b.txt":                                                                               {`D:\My Files\a.txt`, `C:\b.txt`},
		"and/or he/she km/h 24/7 1/2 3/4/2025 2025/12/04 n/a w/o TCP/IP I/O CI/CD a/b/c Mo/Di/Mi":                         nil,
		"text/html image/png application/json application/vnd.ms-excel multipart/form-data":                               nil,
		"openai/gpt-4o anthropic/claude-3.5-sonnet org/repo#12 @scope/pkg library/ubuntu:22.04 nginx:1.27":                nil,
		"github.com/gin-gonic/gin example.com/a.html java.base/jdk.internal.misc registry.x.org/app/web.api":              nil,
		"console.log(x) this.config self.db np.log(2) a.c r.h req.body math.log process.env e.g. i.e. U.S.A. v1.2.3 3.14": nil,
		"Node.js Vue.js ASP.NET 10.0.0.1 192.168.1.0/24 ::1 12:30 16:9 /help /summarize s/foo/bar/ $5/month":              nil,
		"GET /api/v1/users/7.json HTTP/1.1 and POST /api/orders":                                                          nil,
		"ann@example.com ../.. ./ ~ // /* c */ </div> <br/> \\n \\d+ HKLM\\Software\\A.b":                                 nil,
	} {
		if got := factsOf(user(1, text), summarize.FactPath); !slices.Equal(got, want) {
			t.Errorf("%s\ngot  %q\nwant %q", text, got, want)
		}
	}
}

// What states an error and what speaks of one, in a tool's output and in what people say.
func TestErrorsAndWhatLooksLikeThem(t *testing.T) {
	t.Parallel()
	output := func(text string) core.Message { return toolResult(1, "x", text) }
	for text, said := range map[string]bool{ // whether people's words count, too
		"Error: no such table: users": true, "ERROR 1045 (28000): Access denied for user": true, "main.go:12:5: error: undefined: x": true,
		"TypeError: x is not a function": true, "java.io.IOException: disk full": true, "fatal: not a git repository": true, "E0308: mismatched types": true,
		"error[E0502]: cannot borrow `x`": true, "npm ERR! code ELIFECYCLE": true, "thread 'main' panicked at src/main.rs:4:5: error: bad": false, "connect ECONNREFUSED 127.0.0.1:80": true,
		"bash: foo: command not found": false, "cat: x.txt: No such file or directory": false, "--- FAIL: TestSum (0.00s)": false, "FAILED tests/a.py::test_b": false,
		"ls: cannot open directory: Permission denied": false, "2025-12-04 10:00:01 [error] upstream timed out": true, "level=error msg=\"no space\"": true,
		"Segmentation fault (core dumped)": true, "State: Waiting, reason: CrashLoopBackOff": false, "HRESULT 0x80070005": true,
	} {
		if got := factsOf(output(text), summarize.FactError); len(got) != 1 || got[0] != text {
			t.Errorf("output %q: got %q, want it", text, got)
		}
		if got := factsOf(user(1, text), summarize.FactError); (len(got) == 1) != said {
			t.Errorf("said %q: got %q, want %t", text, got, said)
		}
	}
	for _, text := range []string{
		"0 errors, 2 warnings", "no error", "error: null", "\"error\": null,", "err=<nil>", "if err != nil {", "\treturn fmt.Errorf(\"read: %w\", err)", "    12\tfunc (e *Error) Error() string {",
		"except ValueError as e:", "throw new Error(\"bad\");", "} catch (error) {", "import { HttpError } from './errors'", "class NotFoundError(Exception):", "// Error: this is a comment", "raise KeyError(key)",
		"with pytest.raises(ValueError):", "console.error(message)", "=========== ERRORS ===========", "During handling of the above exception, another exception occurred:", "\tat Error.parse (a.js:1:2)",
	} {
		if got := factsOf(output(text), summarize.FactError); len(got) != 0 {
			t.Errorf("output %q: got %q, want nothing", text, got)
		}
	}
	for _, text := range []string{
		"How do I handle an error here?", "There was an error, I think.", "In case of error: tell me.", "Should I catch a ValueError or a TypeError?", "The margin of error is 3 %.", "Don't panic: it works.",
	} {
		if got := factsOf(user(1, text), summarize.FactError); len(got) != 0 {
			t.Errorf("said %q: got %q, want nothing", text, got)
		}
	}
}

// Commands as tools take them, and their exit codes as they report them.
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
		if got := factsOf(m, summarize.FactCommand); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", arguments, got, want)
		}
	}
}
