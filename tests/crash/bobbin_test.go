package crash_test

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
	"strings"
	"syscall"
	"testing"
	"time"

	"bobbin/app/client"
	"bobbin/app/core/datadir"
	"bobbin/tests/process"
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

	now  *process.Process // nil = none runs
	door *process.Door
}

// newBobbin returns a Bobbin that asks the provider at url. It is not started.
func newBobbin(t *testing.T, p place, url string) *bobbin {
	t.Helper()
	dir := den.Temp(t)
	b := &bobbin{
		program: den.Program(t, process.Raced), place: p, config: filepath.Join(dir, "bobbin.yaml"), log: filepath.Join(dir, "log"),
		door: process.NewDoor(),
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

// configure adds settings in YAML. They count from the next start on.
func (b *bobbin) configure(t *testing.T, settings string) {
	t.Helper()
	f, err := os.OpenFile(b.config, os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(settings)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// launch starts the process and does not wait for it to be ready.
func (b *bobbin) launch(t *testing.T) {
	t.Helper()
	cmd := exec.Command(b.program, "serve", "--config", b.config, "--data-dir", b.place.dataDir,
		"--agents-dir", filepath.Join(b.place.dataDir, "agents"), "--addr", "127.0.0.1:0", "--log-format", "text")
	// Nothing of the environment but this: keys of real providers must not be found.
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + b.place.dataDir, "TMPDIR=" + b.place.dataDir,
		"BOBBIN_DATABASE_URL=" + b.place.database, "PROVIDER_KEY=none",
	}
	now, err := den.Start(cmd, b.log)
	if err != nil {
		t.Fatal(err)
	}
	b.now = now
}

// ready waits until the process has announced where it can be reached, lets the
// clients go there, and waits for an answer to what is not let in before the start is over.
func (b *bobbin) ready(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	b.announced(ctx, t)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.door.Addr()+"/version", nil)
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
			b.door.Open(strings.TrimPrefix(s.URL, "http://"))
			return
		}
		select {
		case <-tick.C:
		case <-b.now.Exited:
			t.Fatalf("bobbin ended at its start (%s)", b.now.Cmd.ProcessState)
		case <-ctx.Done():
			t.Fatalf("bobbin is not ready after %s", patience)
		}
	}
}

// announcement returns what the present process says of itself in the data folder.
func (b *bobbin) announcement() (s datadir.Server, ok bool) {
	raw, err := os.ReadFile(filepath.Join(b.place.dataDir, "server.json"))
	if err != nil || json.Unmarshal(raw, &s) != nil {
		return s, false
	}
	return s, s.PID == b.now.Cmd.Process.Pid
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
	if b.now == nil {
		return time.Now()
	}
	b.now.Kill()
	gone := time.Now()
	b.now = nil
	b.door.Shut()
	return gone
}

// stop ends the process as an operator does and expects it to end well.
func (b *bobbin) stop(t *testing.T) {
	t.Helper()
	if err := b.now.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	select {
	case <-b.now.Exited:
		if code := b.now.Cmd.ProcessState.ExitCode(); code != 0 {
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
	transport := &http.Transport{DialContext: b.door.Dial, MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := client.New(client.Options{URL: "http://localhost", HTTP: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	return c
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
func pause(ctx context.Context, d time.Duration) bool { return process.Pause(ctx, d) }
