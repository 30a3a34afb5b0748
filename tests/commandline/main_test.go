package commandline_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"bobbin/app/core/datadir"
	"bobbin/tests/compare"
	"bobbin/tests/golden"
	"bobbin/tests/must"
	"bobbin/tests/process"
)

// patience is how long the tests wait for what should take no time.
const patience = time.Minute

// den holds what all tests of this package share; TestMain opens and closes it.
var den *process.Den

func TestMain(m *testing.M) { process.Main(m, "commandline", &den) }

// shell is a working directory with an environment of its own.
type shell struct {
	dir string
	env []string
}

// newShell returns a shell in an empty directory. Nothing of the environment gets in but
// the variables: keys of real providers must not be found.
func newShell(t *testing.T, variables ...string) shell {
	t.Helper()
	dir := den.Temp(t)
	return shell{dir: dir, env: append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, "home"), "TMPDIR=" + dir}, variables...)}
}

// write writes a file below the directory.
func (s shell) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(s.dir, name)
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
}

// read returns a file below the directory.
func (s shell) read(t *testing.T, name string) string {
	t.Helper()
	raw := must.Get(os.ReadFile(filepath.Join(s.dir, name)))(t)
	return string(raw)
}

// result is what a command came to.
type result struct {
	out, errs string
	code      int
}

// command returns the command line, to be started.
func (s shell) command(ctx context.Context, t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(ctx, den.Program(t, process.Raced), args...)
	cmd.Dir, cmd.Env = s.dir, s.env
	return cmd
}

// run runs the command line to its end.
func (s shell) run(t *testing.T, input string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := s.command(ctx, t, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	must.True(t, (err == nil || errors.As(err, &exit)) && ctx.Err() == nil, "bobbin %v: %v\n%s%s", args, err, out.String(), errs.String())
	return result{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// serve starts a server in the shell and returns what it announces.
func (s shell) serve(t *testing.T, args ...string) datadir.Server {
	t.Helper()
	p := must.Get(den.Start(s.command(context.Background(), t, append([]string{"serve"}, args...)...), filepath.Join(s.dir, "serve.log")))(t)
	t.Cleanup(p.Kill)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		var said datadir.Server
		if raw, err := os.ReadFile(filepath.Join(s.dir, "bobbin-data", "server.json")); err == nil && json.Unmarshal(raw, &said) == nil &&
			strings.Contains(s.read(t, "serve.log"), said.URL) {
			return said
		}
		select {
		case <-tick.C:
		case <-p.Exited:
			t.Fatalf("the server has ended:\n%s", s.read(t, "serve.log"))
		case <-limit.C:
			t.Fatalf("the server does not say where it is:\n%s", s.read(t, "serve.log"))
		}
	}
}

// stranger is a server that nobody should talk to, and counts who does.
type stranger struct {
	*httptest.Server
	requests atomic.Int32
}

func newStranger(t *testing.T) *stranger {
	t.Helper()
	s := &stranger{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnauthorized) }))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.requests.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

const root = "../../"

// blocks returns the code blocks of a Markdown file in a language.
func blocks(t *testing.T, name, language string) []string {
	t.Helper()
	raw := must.Get(os.ReadFile(root + name))(t)
	var found []string
	for _, part := range strings.Split(string(raw), "\n```"+language+"\n")[1:] {
		block, _, _ := strings.Cut(part, "\n```")
		found = append(found, block)
	}
	return found
}

// What the README says can be typed in bash and in zsh: its commands work in an empty home
// folder, one after the other.
func TestReadmeCommands(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bash", "zsh"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program, err := exec.LookPath(name)
			if err != nil {
				t.Skipf("%s is not installed; scripts/test installs it", name)
			}
			s := newShell(t)
			server := s.serve(t, "--addr", "127.0.0.1:0")
			var script strings.Builder
			for _, block := range blocks(t, "README.md", "sh") {
				if strings.Contains(block, "serve") || strings.Contains(block, "scripts/test") || strings.Contains(block, "go run -tags nomsgpack . chat") {
					continue // a server, the tests, and what wants a terminal
				}
				fmt.Fprintln(&script, block)
			}
			text := strings.NewReplacer("--policy all", "--policy window", "go run -tags nomsgpack .", den.Program(t, process.Raced), "http://127.0.0.1:8080", server.URL).Replace(script.String())
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			var out bytes.Buffer
			cmd := exec.CommandContext(ctx, program, "-eu", "-c", text) //nolint:gosec // the README's own
			cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.dir, s.env, &out, &out
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v:\n%s\nof\n%s", err, out.String(), text)
			}
			for _, says := range []string{"event: message.delta", "My name is Ada.”", `"used"`, "facts reachable"} {
				compare.Contains(t, "output", says, out.String())
			}
		})
	}
}

// unsafe finds what an interactive zsh does not take: comments, and patterns without quotes.
var unsafe = regexp.MustCompile(`(?m)^#|\s#|^[^'"\n]*("[^"\n]*"[^'"\n]*|'[^'\n]*'[^'"\n]*)*[?*\[]`)

// Commands of the README and of the documents are meant to be typed as they stand.
func TestCommandsCanBeTyped(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob(root + "docs/*.md")
	must.True(t, err == nil && len(names) != 0, "got %d documents, %v", len(names), err)
	for _, name := range append(names, root+"README.md") {
		name = strings.TrimPrefix(name, root)
		for _, block := range blocks(t, name, "sh") {
			for line := range strings.Lines(block) {
				compare.True(t, !unsafe.MatchString(line), "%s: %q has a comment or a pattern without quotes: zsh refuses it", name, line)
			}
		}
	}
}

// The conversation that the README shows is what happens.
func TestReadmeTranscript(t *testing.T) {
	t.Parallel()
	shown := ""
	for _, block := range blocks(t, "README.md", "text") {
		if strings.HasPrefix(block, "$ go run -tags nomsgpack . chat\n") {
			shown = block
		}
	}
	s := newShell(t)
	s.serve(t, "--addr", "127.0.0.1:0")
	var typed []string
	for line := range strings.Lines(shown) {
		if text, ok := strings.CutPrefix(line, "> "); ok {
			typed = append(typed, strings.TrimSpace(text))
		}
	}
	must.True(t, len(typed) >= 2, "the README shows %q, want a conversation", shown)
	var happened strings.Builder
	happened.WriteString("$ go run -tags nomsgpack . chat\nthe server at http://127.0.0.1:8080\n/help lists the commands, Ctrl-D quits\n")
	args := []string{"chat", "-"}
	for _, line := range typed {
		said := s.run(t, line+"\n", args...)
		_, notes, _ := strings.Cut("\n"+said.errs, "(0 summarized)\n")
		if len(args) == 2 {
			notes = said.errs
		}
		fmt.Fprintf(&happened, "> %s\n%s%s\n", line, notes, strings.TrimRight(said.out, "\n"))
		args = []string{"chat", "--last", "-"}
	}
	happened.WriteString("to continue: go run -tags nomsgpack . chat --session 01a1fd0a-a378-7b36-b3dd-a9be6fae4860")
	readme := string(must.Get(os.ReadFile(root + "README.md"))(t))
	golden.Check(t, root+"README.md", strings.Replace(readme, shown, happened.String(), 1))
}

// hostile is an answer with everything that a terminal obeys or that turns it round.
const hostile = "hi \x1b]52;c;ZXZpbA==\x07\x1b[2J \u009b31mC1 \u202egnp.exe\u202c \u2066x\u2069 done"

// newHostileModel returns the address of a model that answers with it after each of before.
func newHostileModel(t *testing.T, before ...func()) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for _, do := range before {
			do()
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, choice := range []map[string]any{
			{"index": 0, "delta": map[string]string{"role": "assistant", "content": hostile}},
			{"index": 0, "delta": map[string]string{}, "finish_reason": "stop"},
		} {
			raw, _ := json.Marshal(map[string]any{"id": "1", "object": "chat.completion.chunk", "model": "m", "choices": []any{choice}}) // plain data
			fmt.Fprintf(w, "data: %s\n\n", raw)
		}
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// newHostileShell returns a shell whose model answers with what terminals obey.
func newHostileShell(t *testing.T, before ...func()) shell {
	t.Helper()
	s := newShell(t, "TERM=xterm", "BOBBIN_CONFIG=bobbin.yaml")
	s.write(t, "bobbin.yaml", fmt.Sprintf("default_llm: m\ntitles: false\nmodels: [{name: m, provider: openai, base_url: %q}]\n", newHostileModel(t, before...)+"/v1"))
	return s
}

// steering returns the characters in the text that a terminal obeys.
func steering(text string) []rune {
	var found []rune
	for _, r := range text {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
			found = append(found, r)
		}
	}
	return found
}

// Nothing of a model or of a user steers the terminal at the end of a pipe, whatever
// command prints it.
func TestPipesAreCleaned(t *testing.T) {
	t.Parallel()
	s := newHostileShell(t)
	s.serve(t, "--addr", "127.0.0.1:0") // without it each command starts one
	said := s.run(t, "say "+hostile+"\n", "chat")
	compare.True(t, said.code == 0 && strings.Contains(said.out, "gnp.exe") && len(steering(said.out)) == 0, "chat: got %d, %q, %s", said.code, said.out, said.errs)
	id := regexp.MustCompile(`(?m)^[0-9a-f-]{36}`).FindString(s.run(t, "", "sessions", "list").out)
	if shown := s.run(t, "", "sessions", "show", id); shown.code != 0 || id == "" {
		t.Fatalf("sessions show %s: %+v", id, shown)
	}
	s.run(t, "", "api", "createMemory", "content="+hostile, "user_id=evil\nuser"+hostile)
	for _, args := range [][]string{
		{"sessions", "list"}, {"sessions", "list", "--json"}, {"sessions", "show", id}, {"sessions", "show", id, "--json"},
		{"sessions", "export", id, "--format", "markdown"}, {"search", "done"}, {"search", "done", "--json"}, {"context", id}, {"api", "getPrompt", "id=" + id},
		{"api", hostile}, {"api", "getPrompt", hostile}, {"runs", "list", id}, {"api", "searchMemories", "query=done"}, {"api", "listMemories"},
		{"usage", "--by", "user"}, {"audit"}, {"sessions", "show", hostile}, {hostile}, {"chat", "--" + hostile},
	} {
		got := s.run(t, "", args...)
		if found := steering(got.out + got.errs); len(found) > 0 {
			t.Errorf("%q: %U in %q", args, found, got.out+got.errs)
		}
	}
}

// What the command line says to the server of this machine goes to no proxy, whatever
// address the server listens on, and the server announces an address of this machine.
func TestCommandLineUsesNoProxy(t *testing.T) {
	t.Parallel()
	hosts := map[string]string{"0.0.0.0:0": "http://127.0.0.1:", ":0": "http://127.0.0.1:", "127.0.0.1:0": "http://127.0.0.1:"}
	if l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "[::1]:0"); err == nil { // not every machine has IPv6
		_ = l.Close()
		hosts["[::]:0"] = "http://[::1]:"
	}
	for addr, host := range hosts {
		t.Run(addr, func(t *testing.T) {
			t.Parallel()
			proxy := newStranger(t)
			s := newShell(t, "BOBBIN_DEFAULT_LLM=demo", "BOBBIN_AUTH_KEYS=web:sha256:"+strings.Repeat("0a", 32),
				"http_proxy="+proxy.URL, "HTTP_PROXY="+proxy.URL, "https_proxy="+proxy.URL, "NO_PROXY=")
			if said := s.serve(t, "--addr", addr); !strings.HasPrefix(said.URL, host) {
				t.Errorf("the server announces %s, want %s", said.URL, host)
			}
			compare.Equal(t, "sessions list", 0, s.run(t, "", "sessions", "list").code)
			compare.Contains(t, "the start", "api       "+host, s.read(t, "serve.log"))
			compare.Equal(t, "connections to the proxy", 0, proxy.requests.Load())
		})
	}
}
