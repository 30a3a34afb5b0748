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
