package commandline_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"bobbin/app/core/datadir"
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
