package cli_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"bobbin/app/cli"
	"bobbin/app/core/datadir"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// run calls the program with something on its standard input.
func run(t *testing.T, input string, args ...string) (code int, out, errs string) {
	t.Helper()
	in, keys := must.Get2(os.Pipe())(t)
	defer in.Close()
	go func() {
		_, _ = io.WriteString(keys, input) // who does not read it does not need it
		_ = keys.Close()
	}()
	var o, e strings.Builder
	code = cli.Main(t.Context(), args, cli.Streams{In: in, Out: &o, Err: &e})
	return code, o.String(), e.String()
}

// succeed is call for a command that says nothing on the standard error.
func succeed(t *testing.T, flags []string, input, args string) string {
	t.Helper()
	out, errs := call(t, flags, 0, input, strings.Fields(args)...)
	must.True(t, errs == "" || args == "chat", "%s: got %q on the standard error", args, errs)
	return out
}

// call calls the program with flags besides the arguments, wants the exit code, and returns what it said.
func call(t *testing.T, flags []string, want int, input string, args ...string) (out, errs string) {
	t.Helper()
	code, out, errs := run(t, input, append(slices.Clone(args), flags...)...)
	must.True(t, code == want, "%q: got %d, %q, %q; want %d", args, code, out, errs, want)
	return out, errs
}

// says calls the program with flags besides the arguments, wants the exit code and each part in what it printed, and returns that.
func says(t *testing.T, flags []string, want int, args string, parts ...string) string {
	t.Helper()
	code, out, errs := run(t, "", append(strings.Fields(args), flags...)...)
	for _, part := range append(parts, "") {
		compare.True(t, code == want && strings.Contains(out+errs, part), "%s: got %d, %q, %q; want %d and %q", args, code, out, errs, want, part)
	}
	return out + errs
}

// folder returns the flags of a Bobbin in a folder of its own that needs nothing.
func folder(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	empty := filepath.Join(dir, "bobbin.yaml")
	must.Do(t, os.WriteFile(empty, nil, 0o600))
	return []string{"--config", empty, "--data-dir", filepath.Join(dir, "data"), "--agents-dir", filepath.Join(dir, "agents"), "--default-llm", "demo"}
}

// folderLine is what a command says of the folder on which it works without a server.
var folderLine = regexp.MustCompile(`(?m)^no server is running on the folder .*\n`)

func withoutFolder(errs string) string { return folderLine.ReplaceAllString(errs, "") }

// What somebody mistyped is told in one line, with what was meant.
func TestMistakes(t *testing.T) {
	t.Parallel()
	tests := []struct{ args, says string }{
		{"srve", "unknown command: bobbin srve; did you mean bobbin serve?"},
		{"xyzzy", "unknown command: bobbin xyzzy; see bobbin --help"},
		{"sessions lst", "did you mean bobbin sessions list?"},
		{"sessions show", "which session? bobbin sessions show <id>"},
		{"config shw", "did you mean bobbin config show?"},
		{"serve --adr x", "unknown flag: --adr; did you mean --addr?"},
		{"serve --zzzzzzzzz", "unknown flag: --zzzzzzzzz; see bobbin serve --help"},
		{"chat -x", "unknown flag: -x"},
		{"search", "no search words given: bobbin search <words>"},
		{"serve now", `bobbin serve accepts only flags, not "now"`},
		{"chat a b", `too many arguments, starting with "b"; usage: bobbin chat [agent]`},
		{"sessions list --limit many", `--limit: "many" is not a whole number`},
		{"version --addr", "flag needs an argument: --addr"},
		{"serve --addr nonsense", "is not host:port"},
		{"serve --nats-url x", "unknown flag: --nats-url"},
		{"serve --auth-keys x", "unknown flag: --auth-keys"},
		{"runs list", "which session?"},
		{"runs show", "which run?"},
		{"runs approve a b c", "which run?"},
		{"api creatMemory", "the API has no operation creatMemory; did you mean createMemory?"},
		{"api xyzzy", "the API has no operation xyzzy; "},
		{"api createMemory contnet=x", "createMemory has no parameter contnet; did you mean content?"},
		{"api createMemory xyzzy=x", "createMemory has no parameter xyzzy; it has Idempotency-Key, "},
		{"api createMemory content", "content has no value: write content=…"},
		{"api createMemory", "createMemory needs content=…; "},
		{"api getSession", "getSession needs id=…; "},
		{"api version x=1", "version has no parameters, not x=1"},
		{"api createMemory --body nosuch", "open nosuch: no such file"},
		{"api createMemory --body nosuch user_id=ann", "give either --body or members of the body, not both"},
		{"api getSession id=x --body nosuch", "getSession has no body"},
		{"api uploadFile", "uploadFile takes a form"},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			t.Parallel()
			code, out, errs := run(t, "", strings.Fields(tt.args)...)
			if code != 1 || out != "" || !strings.HasPrefix(errs, "bobbin: ") || !strings.Contains(errs, tt.says) || strings.Count(errs, "\n") != 1 {
				t.Errorf("got %d, %q, %q; want 1 and one line that says %q", code, out, errs, tt.says)
			}
		})
	}
}

func TestCommandsThatNeedNoServer(t *testing.T) {
	t.Parallel()
	flags := folder(t)
	tests := []struct{ args, says string }{
		{"", "Available Commands:"},
		{"sessions", "Available Commands:"},
		{"version", "bobbin 0.9.0"},
		{"api", "  createMemory  "},
		{"api createMemory --help", "user_id="},
		{"api --json", `"openapi": "3.1.0"`},
		{"config show", "default_llm                      demo"},
		{"agents show quick", "context.max_messages_before_summary          15"},
		{"agents show quick", "compaction.threshold_iterations              8"}, // L1
		{"migrate", ", newest "},
		{"migrate --status", ", newest "},
	}
	for _, tt := range tests {
		compare.Contains(t, tt.args, tt.says, succeed(t, flags, "", tt.args))
	}
}

// Help is short; every setting is in that of --help-all, of each command.
func TestHelpAll(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args  string
		flag  string
		found bool
	}{
		{"--help", "--limits-run-time", false}, {"", "--limits-run-time", false}, {"--help-all", "--limits-run-time", true},
		{"chat --help", "--addr", false}, {"chat --help-all", "--addr", true}, {"sessions show --help-all", "--last", true}, {"--help", "--url", true},
	} {
		code, out, _ := run(t, "", strings.Fields(tt.args)...)
		compare.True(t, code == 0 && strings.Contains(out, tt.flag+" ") == tt.found, "%q: got %d and %s there: %t, want %t", tt.args, code, tt.flag, !tt.found, tt.found)
		if lines := strings.Count(out, "\n"); !strings.Contains(tt.args, "all") && lines > 60 {
			t.Errorf("%q: got %d lines, want a page", tt.args, lines)
		}
	}
}

// A conversation is resumed, and what cannot be done is said in one line; TestRemoteServer records the rest.
func TestChat(t *testing.T) {
	t.Parallel()
	flags := folder(t)
	do := func(want int, input string, args ...string) (out, errs string) {
		return call(t, flags, want, input, args...)
	}
	do(0, "my name is Ada", "chat", "quick")
	if out, _ := do(0, "", "search", "nowhere"); !strings.HasPrefix(out, "nothing found; ") {
		t.Errorf("search for nothing: %q", out)
	}
	if _, errs := do(1, "", "search", "..."); !strings.Contains(errs, "the query has no word") {
		t.Errorf("search without a word: %q", errs)
	}
	id := firstID.FindString(succeed(t, flags, "", "sessions list"))
	// B6: a resumed session shows its history.
	if out, errs := do(0, "what is my name?", "chat", "--session", id[:20]); withoutFolder(errs) != "2 messages in history (0 summarized)\n" || !strings.Contains(out, "Ada") {
		t.Errorf("resumed: %q", out)
	}
	for _, tt := range []struct {
		says string
		args []string
	}{
		{`agent "nosuch" does not exist; there are`, []string{"chat", "nosuch"}},
		{"no session id begins with 123; ", []string{"chat", "--session", "123"}},
		{"belongs to agent quick, not to assistant", []string{"chat", "assistant", "--session", id}},
		{"no session id begins with 123; ", []string{"sessions", "show", "123"}},
		{"limit must be a whole number from 1 to 200", []string{"sessions", "list", "--limit", "-3"}},
		{"unknown command /nosuch", []string{"chat"}},
		{"default_agent: agent \"nosuch\" does not exist", []string{"chat", "--default-agent", "nosuch"}},
	} {
		if _, errs := do(1, "/nosuch\n", tt.args...); !strings.Contains(errs, tt.says) || strings.Count(withoutFolder(errs), "\n") != 1 {
			t.Errorf("%q: got %q, want %q", tt.args, errs, tt.says)
		}
	}
}

// lines is what a server says; address waits for where it can be reached.
type lines struct{ found chan string }

func (l lines) Write(p []byte) (int, error) {
	if url := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(string(p)); url != "" {
		l.found <- url
	}
	return len(p), nil
}

// serve runs a server until stop is called.
func serve(t *testing.T, flags []string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, ended := lines{make(chan string, 1)}, make(chan int, 1)
	var errs strings.Builder
	go func() {
		ended <- cli.Main(ctx, append([]string{"serve", "--addr", "127.0.0.1:0", "--log-level", "error"}, flags...), cli.Streams{In: os.Stdin, Out: out, Err: &errs})
	}()
	select {
	case <-out.found:
	case code := <-ended:
		t.Fatalf("server ended with %d: %s", code, errs.String())
	}
	return func() {
		cancel()
		code := <-ended
		compare.True(t, code == 0, "server ended with %d: %s", code, errs.String())
	}
}

// A chat goes on with the next process, which has another token and, here, another
// address; without one it says what is missing.
func TestChatOutlivesItsServer(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{true, false} {
		t.Run(fmt.Sprintf("started again %t", again), func(t *testing.T) {
			t.Parallel()
			flags := folder(t)
			stop := serve(t, flags)
			in, keys := must.Get2(os.Pipe())(t)
			defer in.Close()
			answers, errs := &waiting{seen: make(chan struct{}, 1)}, &strings.Builder{}
			ended := make(chan int, 1)
			go func() {
				ended <- cli.Main(t.Context(), append([]string{"chat", "-"}, flags...), cli.Streams{In: in, Out: answers, Err: errs})
			}()
			fmt.Fprintln(keys, "my name is Ada")
			<-answers.seen
			stop()
			if again {
				defer serve(t, flags)()
			}
			fmt.Fprintln(keys, "what is my name?")
			_ = keys.Close() // the end of the conversation
			code := <-ended
			if again && (code != 0 || !strings.Contains(answers.b.String(), "“my name is Ada”")) {
				t.Errorf("got %d, %q, %q; want an answer of the new process", code, answers.b.String(), errs)
			}
			if !again && (code != 1 || !strings.Contains(errs.String(), "has stopped; start it again with: ")) {
				t.Errorf("got %d, %q; want to be told that the server has stopped", code, errs)
			}
		})
	}
}

// A server that has closed its address while it still holds the folder has stopped; one that another has followed
// meanwhile, which it says by refusing the token, is no obstacle. What is said is true of the last one.
func TestServerThatIsGone(t *testing.T) {
	t.Parallel()
	const closed, stopped, refuses = "http://127.0.0.1:1", "the server at http://127.0.0.1:1 has stopped; start it again with: ", "URL rejects the token that it has left in "
	for name, c := range map[string]struct {
		first, second datadir.Server // without a URL: where the test listens
		says          string
		interrupted   bool
	}{
		"closed":                       {datadir.Server{URL: closed}, datadir.Server{}, stopped, false},
		"followed":                     {datadir.Server{Token: "old"}, datadir.Server{Token: "new"}, "", false},
		"followed, and closed as well": {datadir.Server{Token: "old"}, datadir.Server{URL: closed}, stopped, false},
		"refuses":                      {datadir.Server{Token: "old"}, datadir.Server{Token: "old"}, refuses, false},
		"followed, and refuses":        {datadir.Server{Token: "old"}, datadir.Server{Token: "older"}, refuses, false},
		"interrupted":                  {datadir.Server{Token: "old"}, datadir.Server{Token: "old"}, "canceled", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flags := folder(t)
			held := must.Get(datadir.Hold(t.Context(), flags[3]))(t)
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") == "Bearer new" {
					_, _ = io.WriteString(w, `{"items":[]}`)
					return
				}
				_ = held.Announce(c.second)
				w.WriteHeader(http.StatusUnauthorized)
				if c.interrupted {
					interrupt()
				}
			}))
			defer server.Close()
			c.first.URL, c.second.URL = cmp.Or(c.first.URL, server.URL), cmp.Or(c.second.URL, server.URL)
			must.Do(t, held.Announce(c.first))
			var errs strings.Builder
			code := cli.Main(ctx, append([]string{"sessions", "list"}, flags...), cli.Streams{In: os.Stdin, Out: io.Discard, Err: &errs})
			if got := strings.ReplaceAll(errs.String(), server.URL, "URL"); (code == 0) != (c.says == "") || !strings.Contains(got, c.says) {
				t.Errorf("got %d, %q, want %q", code, got, c.says)
			}
			must.Do(t, held.Release())
		})
	}
}

// waiting says when something was written.
type waiting struct {
	b    strings.Builder
	seen chan struct{}
}

func (w *waiting) Write(p []byte) (int, error) {
	n, err := w.b.Write(p)
	select {
	case w.seen <- struct{}{}:
	default:
	}
	return n, err
}

// Any operation can be called: with parameters in the path and the query, with members of a body or a
// file, and with a stream as its answer.
func TestAPI(t *testing.T) {
	t.Parallel()
	flags := folder(t)
	defer serve(t, flags)()
	do := func(input, args string) string { return succeed(t, flags, input, "api "+args) }
	id, _ := fields(t, do("", `createSession title=123 tags=["a","b"] pinned=true`))["id"].(string)
	got := fields(t, do("", "getSession id="+id))
	if tags, _ := got["tags"].([]any); got["title"] != "123" || len(tags) != 2 || got["pinned"] != true {
		t.Errorf("got the session %v, want its members with their types", got)
	}
	run, _ := fields(t, do(`{"content": "hello"}`, "sendMessage --body - id="+id))["run"].(map[string]any)
	runID, _ := run["id"].(string)
	compare.Contains(t, "watchRun: want the events of the run", "\nevent: run.succeeded\n", do("", "watchRun after=0 id="+runID))
	if items, _ := fields(t, do("", "listMessages limit=1 id="+id))["items"].([]any); len(items) != 1 {
		t.Errorf("listMessages: got %v, want one", items)
	}
	out := do("", "exportSession format=markdown id="+id)
	compare.True(t, strings.HasPrefix(out, "# 123\n"), "exportSession: got %q", out)
	compare.Equal(t, "archiveSession", "", do("", "archiveSession id="+id))
}

// Every operation of the document describes itself, and is offered to shells.
func TestAPIOperations(t *testing.T) {
	t.Parallel()
	_, list, _ := run(t, "", "api")
	ids := regexp.MustCompile(`(?m)^  (\w+)  `).FindAllStringSubmatch(list, -1)
	must.True(t, len(ids) >= 70, "got %d operations in\n%s", len(ids), list)
	_, offers, _ := run(t, "", "__complete", "api", "")
	for _, id := range ids {
		if code, out, errs := run(t, "", "api", id[1], "--help"); code != 0 || !strings.HasPrefix(out, id[1]+": ") {
			t.Errorf("%s --help: got %d, %q, %q", id[1], code, out, errs)
		}
		compare.Contains(t, id[1]+" is not offered", id[1]+"\t", offers)
	}
	if _, offers, _ := run(t, "", "__complete", "api", "createMemory", "con"); !strings.HasPrefix(offers, "content=") {
		t.Errorf("parameters: got %q", offers)
	}
}
