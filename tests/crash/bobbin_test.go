package crash_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"bobbin/app/client"
	"bobbin/app/folder"
)

// patience is how long the tests wait for what should take no time: long enough
// for any machine, and for a lease to pass.
const patience = time.Minute

// The model of the tests: a window so small that summaries are made often.
const (
	modelWindow = 6_000
	modelOutput = 1_000
)

// bobbin is a Bobbin in a process of its own, which is killed and started again
// on the same data. One goroutine starts and kills it; anybody may use client.
type bobbin struct {
	program string
	place   place
	config  string // file
	log     string // file

	cmd    *exec.Cmd
	exited chan struct{}

	mu   sync.Mutex
	addr string        // of the server; empty while it is down; guarded by mu
	up   chan struct{} // closed while it is up; guarded by mu
}

// newBobbin returns a Bobbin that asks the provider at url. It is not started.
func newBobbin(t *testing.T, p place, url string) *bobbin {
	t.Helper()
	file, err := program()
	if err != nil {
		t.Fatal(err)
	}
	dir := tempDir(t)
	b := &bobbin{
		program: file, place: p, config: filepath.Join(dir, "bobbin.yaml"), log: filepath.Join(dir, "log"),
		up: make(chan struct{}),
	}
	config := fmt.Sprintf("default_llm: small\nmodels:\n  - name: small\n    provider: openai\n    base_url: %s\n"+
		"    api_key_env: PROVIDER_KEY\n    context_window: %d\n    max_output_tokens: %d\n", url, modelWindow, modelOutput)
	if err := os.WriteFile(b.config, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.kill()
		b.readLog(t)
	})
	return b
}

// launch starts the process and does not wait for it to be ready.
func (b *bobbin) launch(t *testing.T) {
	t.Helper()
	log, err := os.OpenFile(b.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }() // the child has it too
	cmd := exec.Command(b.program, "serve", "--config", b.config, "--data-dir", b.place.dataDir,
		"--agents-dir", filepath.Join(b.place.dataDir, "agents"), "--addr", "127.0.0.1:0", "--log-format", "text")
	// Nothing of the environment but this: keys of real providers must not be found.
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + b.place.dataDir, "TMPDIR=" + b.place.dataDir,
		"BOBBIN_DATABASE_URL=" + b.place.database, "PROVIDER_KEY=none",
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := filepath.Join(pidDir(), strconv.Itoa(cmd.Process.Pid))
	if err := os.WriteFile(pid, nil, 0o600); err != nil {
		t.Error(err)
	}
	exited := make(chan struct{})
	b.cmd, b.exited = cmd, exited
	go func() {
		_ = cmd.Wait() // how it ended is in cmd.ProcessState
		_ = os.Remove(pid)
		close(exited)
	}()
}

// ready waits until the process has announced where it can be reached, lets the
// clients go there, and waits for an answer to what is not let in before the start is over.
func (b *bobbin) ready(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	b.announced(ctx, t)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.addr+"/version", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatalf("bobbin does not answer: %v", err)
	}
	if err := res.Body.Close(); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("bobbin answers %s, %v", res.Status, err)
	}
}

// announced waits for the address.
func (b *bobbin) announced(ctx context.Context, t *testing.T) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		if s, ok := b.announcement(); ok {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.addr = strings.TrimPrefix(s.URL, "http://")
			close(b.up)
			return
		}
		select {
		case <-tick.C:
		case <-b.exited:
			t.Fatalf("bobbin ended at its start (%s)", b.cmd.ProcessState)
		case <-ctx.Done():
			t.Fatalf("bobbin is not ready after %s", patience)
		}
	}
}

// announcement returns what the present process says of itself in the data folder.
func (b *bobbin) announcement() (s folder.Server, ok bool) {
	raw, err := os.ReadFile(filepath.Join(b.place.dataDir, "server.json"))
	if err != nil || json.Unmarshal(raw, &s) != nil {
		return s, false
	}
	return s, s.PID == b.cmd.Process.Pid
}

// start launches the process and waits for it.
func (b *bobbin) start(t *testing.T) {
	t.Helper()
	b.launch(t)
	b.ready(t)
}

// kill ends the process with SIGKILL and returns when it was gone. It does
// nothing if none runs.
func (b *bobbin) kill() time.Time {
	if b.cmd == nil {
		return time.Now()
	}
	_ = b.cmd.Process.Kill() // it may have ended by itself
	<-b.exited
	gone := time.Now()
	b.cmd = nil
	b.down()
	return gone
}

// down lets clients wait for the next process.
func (b *bobbin) down() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.addr != "" {
		b.addr, b.up = "", make(chan struct{})
	}
}

// stop ends the process as an operator does and expects it to end well.
func (b *bobbin) stop(t *testing.T) {
	t.Helper()
	if err := b.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	select {
	case <-b.exited:
		if code := b.cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("exit code after SIGTERM: got %d, want 0", code)
		}
	case <-ctx.Done():
		t.Errorf("bobbin has not stopped %s after SIGTERM", patience)
	}
	b.kill()
}

// client returns a client whose connections wait for the process to be up.
func (b *bobbin) client(t *testing.T) *client.Client {
	t.Helper()
	transport := &http.Transport{DialContext: b.dial, MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := client.New(client.Options{URL: "http://localhost", HTTP: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// dial connects to the process, as soon as there is one.
func (b *bobbin) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	for {
		b.mu.Lock()
		addr, up := b.addr, b.up
		b.mu.Unlock()
		if addr != "" {
			return new(net.Dialer).DialContext(ctx, "tcp", addr)
		}
		select {
		case <-up:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// readLog fails the test for what must never be in the log, and shows its end if
// the test has failed.
func (b *bobbin) readLog(t *testing.T) {
	raw, err := os.ReadFile(b.log)
	if err != nil {
		t.Errorf("log of bobbin: %v", err)
	}
	for _, bad := range []string{"DATA RACE", "panic", "fatal error:", "level=ERROR"} {
		if i := bytes.Index(raw, []byte(bad)); i >= 0 {
			t.Errorf("the log of bobbin has %q:\n%s", bad, raw[max(0, i-200):min(len(raw), i+3000)])
		}
	}
	if t.Failed() {
		t.Logf("the end of bobbin's log:\n%s", raw[max(0, len(raw)-4000):])
	}
}

// pause waits for d and reports false if ctx ended before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
