package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/must"
	"bobbin/tests/process"
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
	den := apptest.Must(process.Open("many"))(t)
	t.Cleanup(den.Close)
	server := den.NewServer(t, den.Program(t, false), den.Temp(t), fmt.Sprintf("default_llm: house\ntitles: false\nlog: {level: warn}\n"+
		"models: [{name: house, provider: openai, base_url: %q, context_window: 8192, max_output_tokens: 2048}]\n", p.URL), "BOBBIN_DATABASE_URL="+url)
	must.Do(t, server.Start(t.Context()))
	t.Cleanup(func() {
		if log, bad := server.ReadLog("ERROR"); t.Failed() || len(bad) > 0 {
			t.Logf("the log:\n%s", log[max(0, len(log)-4000):])
		}
	})
	s.pid, s.url = server.PID(), "http://"+server.Door.Addr()
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
	status := apptest.Must(os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid)))(t)
	found := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(status)
	if found == nil {
		t.Fatal("the system does not say what the process takes")
	}
	rss := apptest.Must(strconv.ParseInt(string(found[1]), 10, 64))(t)
	return bytesOf(rss) << 10
}

// session makes a session.
func (s *manyServer) session(ctx context.Context, t *testing.T) core.SessionID {
	t.Helper()
	session := apptest.Must(client.Call(ctx, s.client, ops.CreateSession, ops.NewSession{}))(t)
	return session.ID
}
