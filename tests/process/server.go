package process

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"bobbin/app/core/datadir"
	"bobbin/tests/must"
)

// ErrEnded is that of a process which ended at its start.
var ErrEnded = errors.New("bobbin ended at its start")

// Server is a Bobbin in a process of its own, which is ended and started again on the same data. Safe for
// concurrent use.
type Server struct {
	Dir    string // of its data
	Config string // file
	Door   *Door

	den     *Den
	program string
	log     string
	env     []string

	mu  sync.Mutex
	now *Process // nil = none runs; guarded by mu
}

// NewServer returns a server with the settings, which are YAML. It has nothing of the environment but the variables:
// keys of real providers must not be found. It is not started.
func (d *Den) NewServer(t testing.TB, program, dir, settings string, variables ...string) *Server {
	t.Helper()
	own := d.Temp(t)
	s := &Server{
		Dir: dir, Config: filepath.Join(own, "bobbin.yaml"), Door: NewDoor(), den: d, program: program, log: filepath.Join(own, "log"),
		env: append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "PROVIDER_KEY=none"}, variables...),
	}
	must.Do(t, os.WriteFile(s.Config, []byte(settings), 0o600))
	t.Cleanup(func() { s.Kill() })
	return s
}

// Launch starts the process, if none runs, and does not wait for it.
func (s *Server) Launch() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.launch()
}

func (s *Server) launch() (err error) {
	if s.now == nil {
		cmd := exec.Command(s.program, "serve", "--config", s.Config, "--data-dir", s.Dir, "--agents-dir", filepath.Join(s.Dir, "agents"), "--addr", "127.0.0.1:0", "--log-format", "text")
		cmd.Env = s.env
		s.now, err = s.den.Start(cmd, s.log)
	}
	return err
}

// Start starts the process, if none runs, and waits until it has announced where it can be reached.
func (s *Server) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.launch(); err != nil {
		return err
	}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		var said datadir.Server
		raw, err := os.ReadFile(filepath.Join(s.Dir, "server.json"))
		if err == nil && json.Unmarshal(raw, &said) == nil && said.PID == s.PID() {
			s.Door.Open(strings.TrimPrefix(said.URL, "http://"))
			return nil
		}
		select {
		case <-tick.C:
		case <-s.now.Exited:
			state := s.now.Cmd.ProcessState
			s.now = nil
			return fmt.Errorf("%w (%s)", ErrEnded, state)
		case <-ctx.Done():
			return fmt.Errorf("bobbin is not ready: %w", context.Cause(ctx))
		}
	}
}

// Serve is Start that returns when the server takes requests: until then it has only announced itself.
func (s *Server) Serve(ctx context.Context) error {
	if err := s.Start(ctx); err != nil {
		return err
	}
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Door.Addr()+"/readyz", nil)
		if err != nil {
			return err
		}
		res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
		if err == nil && res.Body.Close() == nil && res.StatusCode == http.StatusOK {
			return nil
		}
		if !Pause(ctx, 20*time.Millisecond) {
			return fmt.Errorf("bobbin is not ready: %w", context.Cause(ctx))
		}
	}
}

// PID returns the id of the process that was started last.
func (s *Server) PID() int { return s.now.Cmd.Process.Pid }

// Kill ends the process with SIGKILL, and reports whether there was one.
func (s *Server) Kill() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kill()
}

func (s *Server) kill() bool {
	if s.now == nil {
		return false
	}
	s.now.Kill()
	s.now = nil
	s.Door.Shut()
	return true
}

// Signal sends a signal to the process, if there is one.
func (s *Server) Signal(signal syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil {
		return nil
	}
	return s.now.Cmd.Process.Signal(signal)
}

// Wait waits until the process, if there is one, has ended well after a signal. One that does not is killed, and is an error.
func (s *Server) Wait(limit time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil {
		return nil
	}
	defer s.kill()
	select {
	case <-s.now.Exited:
		if code := s.now.Cmd.ProcessState.ExitCode(); code != 0 {
			return fmt.Errorf("exit code after the signal: got %d, want 0", code)
		}
		return nil
	case <-time.After(limit):
		return fmt.Errorf("bobbin has not stopped %s after the signal", limit)
	}
}

// Stop ends the process as an operator does.
func (s *Server) Stop(limit time.Duration) error {
	return errors.Join(s.Signal(syscall.SIGTERM), s.Wait(limit))
}

// ReadLog returns the log, and those of the words that must never be in it, with what stands around them.
func (s *Server) ReadLog(words ...string) (log []byte, found []string) {
	log, err := os.ReadFile(s.log)
	if err != nil {
		return nil, []string{err.Error()}
	}
	for _, word := range words {
		if i := bytes.Index(log, []byte(word)); i >= 0 {
			found = append(found, fmt.Sprintf("the log has %q:\n%s", word, log[max(0, i-400):min(len(log), i+3000)]))
		}
	}
	return log, found
}

// FindNode returns the path of Node. Without it the test is skipped.
func FindNode(t testing.TB) string {
	t.Helper()
	noteSource()
	node, err := exec.LookPath("node")
	if err != nil {
		skipTest(t, "node", "node is missing; install Debian's package nodejs")
	}
	return node
}

// FindNodeClients returns the path of Node, which must be 20 or later and have the clients of
// npm that the package locks. Without them the test is skipped.
func FindNodeClients(t testing.TB) string {
	t.Helper()
	node := FindNode(t)
	version, err := exec.CommandContext(t.Context(), node, "--version").Output()
	major, _, _ := strings.Cut(strings.TrimPrefix(string(version), "v"), ".")
	if n, _ := strconv.Atoi(major); err != nil || n < 20 { // Debian 12 has 18
		t.Skip("node is older than 20, which the clients need")
	}
	requirePackages(t, "node", ".")
	return node
}

// FindPageTools returns the path of npm, for the packages of the web page's source in the folder. Without
// them the test is skipped.
func FindPageTools(t testing.TB, folder string) string {
	t.Helper()
	FindNode(t)
	npm, err := exec.LookPath("npm")
	if err != nil {
		skipTest(t, "browser", "npm is missing; install Debian's package npm")
	}
	requirePackages(t, "browser", folder)
	return npm
}

// FindBrowser returns the paths of Node, for scripts in the folder, and of Chromium: of its headless shell, which takes
// half of the processor's time, if it is there. Without them the test is skipped.
func FindBrowser(t testing.TB, folder string) (node, chromium string) {
	t.Helper()
	node = FindNode(t)
	chromium, err := exec.LookPath("chromium-headless-shell")
	if err != nil {
		chromium, err = exec.LookPath("chromium")
	}
	if err != nil {
		skipTest(t, "browser", "Chromium is missing; install Debian's package chromium-headless-shell")
	}
	requirePackages(t, "browser", folder)
	return node, chromium
}

// requirePackages skips the test unless the packages that the folder locks are installed.
func requirePackages(t testing.TB, requirement, folder string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(folder, "node_modules/.package-lock.json")); err != nil {
		skipTest(t, requirement, "packages of npm are missing; run scripts/clients")
	}
}

// FindPythonClients returns the path of the Python that has the clients of PyPI that the package locks.
// Without it the test is skipped.
func FindPythonClients(t testing.TB) string {
	t.Helper()
	locked := must.Get(os.ReadFile("requirements.txt"))(t)
	installed, _ := os.ReadFile("venv/installed") // of an older lock file after a merge
	if !bytes.Equal(installed, locked) {
		skipTest(t, "python", "the clients of PyPI are missing or older than requirements.txt; run scripts/clients python")
	}
	return "venv/bin/python"
}

// skipTest skips the test, or fails it if BOBBIN_TEST_REQUIRE demands what is missing.
func skipTest(t testing.TB, requirement, reason string) {
	t.Helper()
	must.True(t, !slices.Contains(strings.Split(os.Getenv("BOBBIN_TEST_REQUIRE"), ","), requirement), "%s, and BOBBIN_TEST_REQUIRE demands it", reason)
	t.Skip(reason)
}

// PatientTransport sends a request again after the pause that a server asks for which is overloaded (503), as
// clients do.
type PatientTransport struct{ *http.Transport }

// RoundTrip sends the request until it is not refused for load.
func (p PatientTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	for {
		answer, err := p.Transport.RoundTrip(r)
		if err != nil || answer.StatusCode != http.StatusServiceUnavailable || r.GetBody == nil {
			return answer, err
		}
		seconds, err := strconv.Atoi(answer.Header.Get("Retry-After"))
		if err != nil || !Pause(r.Context(), time.Duration(seconds)*time.Second) {
			return answer, nil
		}
		_ = answer.Body.Close()
		r = r.Clone(r.Context())
		if r.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
}
