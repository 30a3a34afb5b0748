package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/datadir"
	"bobbin/tests/apptest"
	"bobbin/tests/provider"
)

// manyServer is a Bobbin with many streams: in this process, or one of its own.
type manyServer struct {
	url    string
	client *client.Client
	http   *http.Client
	pid    int
}

// newManyServer starts one; the limits count in a process of its own.
func newManyServer(t *testing.T, url string, p *provider.Server) *manyServer {
	t.Helper()
	s := &manyServer{pid: os.Getpid(), http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	t.Cleanup(s.http.CloseIdleConnections)
	if apptest.IsLong() {
		s.process(t, url, p)
	} else {
		h := apptest.New(t, url, apptest.WithModel("house", 8_000_000, 2048, p), apptest.WithGrace(time.Millisecond)) // nothing is summarized beside it
		s.url = h.URL
	}
	var err error
	if s.client, err = client.New(client.Options{URL: s.url, HTTP: s.http}); err != nil {
		t.Fatal(err)
	}
	return s
}

// process builds Bobbin and starts it.
func (s *manyServer) process(t *testing.T, url string, p *provider.Server) {
	t.Helper()
	dir := t.TempDir()
	program, settings := filepath.Join(dir, "bobbin"), filepath.Join(dir, "bobbin.yaml")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", program, "bobbin").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	text := fmt.Sprintf("default_llm: house\ntitles: false\n"+
		"models: [{name: house, provider: openai, base_url: %q, context_window: 8192, max_output_tokens: 2048}]\n", p.URL)
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "serve", "--config", settings, "--data-dir", dir, "--agents-dir", filepath.Join(dir, "agents"), "--addr", "127.0.0.1:0", "--log-level", "warn")
	cmd.Env = append(os.Environ(), "BOBBIN_DATABASE_URL="+url)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if raw, err := os.ReadFile(log.Name()); err == nil && (t.Failed() || strings.Contains(string(raw), "ERROR")) {
			t.Logf("the log:\n%s", raw[max(0, len(raw)-4000):])
		}
	})
	s.pid = cmd.Process.Pid
	s.url = announced(t, filepath.Join(dir, "server.json"))
}

// announced waits for the address that a process writes.
func announced(t *testing.T, file string) string {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range 1000 {
		var said datadir.Server
		if raw, err := os.ReadFile(file); err == nil && json.Unmarshal(raw, &said) == nil {
			return said.URL
		}
		<-tick.C
	}
	t.Fatal("the server does not say where it is")
	return ""
}

// bytesOf is a number of bytes that says so.
type bytesOf int64

func (b bytesOf) String() string {
	if b < 1<<20 {
		return fmt.Sprintf("%.1f KiB", float64(b)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(b)/(1<<20))
}

// memory asks the system what the process takes; 0 if it is not a process of its own.
func (s *manyServer) memory(t *testing.T) bytesOf {
	t.Helper()
	if !apptest.IsLong() {
		return 0
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(status)
	if found == nil {
		t.Fatal("the system does not say what the process takes")
	}
	rss, err := strconv.ParseInt(string(found[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return bytesOf(rss) << 10
}

// session makes a session.
func (s *manyServer) session(ctx context.Context, t *testing.T) core.SessionID {
	t.Helper()
	session, err := s.client.CreateSession(ctx, core.Session{})
	if err != nil {
		t.Fatal(err)
	}
	return session.ID
}
