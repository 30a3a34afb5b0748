package mcp_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/mcptest"
	"bobbin/tests/must"
	"bobbin/tests/process"
)

// What a program writes beside the protocol is dropped, and what it writes in a flood costs neither
// memory nor the log.
func TestNoise(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string][]string{
		"garbage":  {`text="Starting server ..."`, "text=listening[31m"},
		"complain": {"mcp server wrote"},
		"spam":     nil,
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s, log := start(t, program(mode))
			if got := call(t, s, "test__echo", `{"text":"x"}`); got != "x" {
				t.Fatalf("got %s\n%.2000s", got, log)
			}
			for _, part := range want { // its lines come beside the answer
				for limit := time.Now().Add(patience); !strings.Contains(log.String(), part); process.Pause(t.Context(), time.Millisecond) {
					must.True(t, !time.Now().After(limit), "the log has no %s: %.2000s", part, log)
				}
			}
			text := log.String()
			compare.True(t, len(text) <= 200_000 && !strings.Contains(text, "\x1b"), "the log has %d bytes", len(text))
		})
	}
}

// A program that shows its environment shows no secret to the model or the log.
func TestSecretsOfTheEnvironment(t *testing.T) {
	t.Parallel()
	d := program("leak")
	d.Env = []string{"PATH", "TOKEN", "MODE=verbose-4711"}
	s, log := start(t, d)
	for name, want := range map[string]string{"TOKEN": "***", "MODE": "verbose-4711", "PATH": os.Getenv("PATH")} {
		compare.Equal(t, name, want, call(t, s, "test__env", fmt.Sprintf(`{"name":%q}`, name)))
	}
	await(t, s, "the lines in the log", func(tools.Listing) bool { return strings.Count(log.String(), "mcp server wrote") == 2 })
	if text := log.String(); strings.Contains(text, "hush") || !strings.Contains(text, `text="debug: token ***"`) {
		t.Errorf("got the log %s", text)
	}
	d.Args = append(d.Args[:len(d.Args)-1:len(d.Args)-1], "refuse-with-token")
	if s, log := start(t, d); !strings.HasSuffix(s.Listing().Problem, "it said: wrong token ***") || strings.Contains(log.String(), "hush") {
		t.Errorf("got the problem %q, the log %s", s.Listing().Problem, log)
	}
}

// A server that does not speak the protocol has no tools, and says why.
func TestNoServer(t *testing.T) {
	t.Parallel()
	gone := core.ToolDefinition{Name: "test", Kind: core.ToolMCP, Command: "no-such-program", File: "x.yaml"}
	web := func(answer func(http.ResponseWriter)) core.ToolDefinition {
		return overHTTP(t, nil, func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w) })
		})
	}
	for name, c := range map[string]struct {
		d    core.ToolDefinition
		want string
	}{
		"no program": {gone, "the program no-such-program is not installed, or cannot be executed"},
		"it ends":    {program("refuse"), "it said: cannot open the database"},
		"no end":     {program("long"), "message of more than 16 MiB"},
		"a web page": {web(func(w http.ResponseWriter) { fmt.Fprint(w, "<html>") }), `unsupported content type "text/html; charset=utf-8": check that url`},
		"a fault":    {web(func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) }), "Internal Server Error"},
		"a JSON bomb": {web(func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":1,"result":"`))
			for range 20 << 10 {
				_, _ = w.Write(make([]byte, 1<<10))
			}
		}), "message of more than 16 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := start(t, c.d)
			if got := s.Listing(); len(got.Tools) != 0 || !strings.Contains(got.Problem, c.want) || len(got.Problem) > 1000 {
				t.Errorf("got %v, %q, want %q", names(got), got.Problem, c.want)
			}
		})
	}
}

// Of too many, too large and too deep tools those that fit are left.
func TestManyTools(t *testing.T) {
	t.Parallel()
	s, _ := start(t, program("many"))
	got := s.Listing()
	compare.True(t, len(got.Tools) >= 100 && len(got.Tools) <= 128, "got %d tools", len(got.Tools))
	all := strings.Join(got.Notes, "\n")
	for _, want := range []string{`tool "deep" was left out: its schema has more than 32 levels`, `tool "huge" was left out: its schema has more than 64 KiB`, " tools, and models get 128: the others are left out"} {
		compare.True(t, strings.Contains(all, want), "got the notes\n%s\nwant %s", all, want)
	}
	for _, c := range got.Tools {
		if len(c.Definition.Description) > 4<<10 {
			t.Errorf("%s has a description of %d bytes", c.Definition.Name, len(c.Definition.Description))
		}
	}
}

// A result that has no end ends the connection, and the next call has a new one.
func TestLargeResult(t *testing.T) {
	t.Parallel()
	s, log := start(t, program(""))
	compare.Contains(t, `call(t, s, "test__large", "{}")`, "was lost during the call", call(t, s, "test__large", "{}"))
	await(t, s, "the next connection", func(tools.Listing) bool { return strings.Count(log.String(), "mcp server connected") > 1 })
	compare.Equal(t, `call(t, s, "test__echo", '{"text":"x"}')`, "x", call(t, s, "test__echo", `{"text":"x"}`))
	compare.Contains(t, "the log does not say why", "message of more than 16 MiB", log.String())
}

// A server over HTTP that dies and comes back is connected to again.
func TestHTTPServerComesBack(t *testing.T) {
	t.Parallel()

	gate := make(chan bool, 1)
	gate <- false
	d := overHTTP(t, mcptest.New(""), func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			down := <-gate
			gate <- down
			if down {
				panic(http.ErrAbortHandler)
			}
			next.ServeHTTP(w, r)
		})
	})
	s, log := start(t, d)
	setDown := func(to bool) { <-gate; gate <- to }
	setDown(true)
	if got := call(t, s, "test__write", "{}"); !strings.HasPrefix(got, "error: the connection to the server test was lost during the call") {
		t.Errorf("got %s", got)
	}
	await(t, s, "the loss", func(l tools.Listing) bool { return l.Problem != "" })
	compare.Contains(t, `call(t, s, "test__write", "{}")`, "is not connected at the moment, so nothing was called", call(t, s, "test__write", "{}"))
	setDown(false)
	await(t, s, "the connection", func(l tools.Listing) bool { return l.Problem == "" })
	if got := call(t, s, "test__write", `{"text":"x"}`); got != "wrote x" {
		t.Errorf("got %s\n%s", got, log)
	}
}
