package api_test

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"bobbin/app/api"
	"bobbin/tests/apitest"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// served is a server that listens on this machine.
type served struct {
	url  string
	addr string
	stop func()
	done chan error    // what Serve returned
	over chan struct{} // closed when it has
}

func serve(t *testing.T, opts api.Options) *served {
	t.Helper()
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	ctx, cancel := context.WithCancel(t.Context())
	s := &served{url: "http://" + listener.Addr().String(), addr: listener.Addr().String(), stop: cancel, done: make(chan error, 1), over: make(chan struct{})}
	go func() {
		defer close(s.over)
		s.done <- api.New(opts).Serve(ctx, listener)
	}()
	t.Cleanup(func() {
		cancel()
		<-s.over
	})
	return s
}

// open sends a request and returns the answer, its body still to be read.
func open(t *testing.T, method, url, body string) *http.Response {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body)))(t)
	r.Header.Set("Accept", "text/event-stream")
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return response
}

// TestStopCutsOff: what does not end within the grace period is cut off.
func TestStopCutsOff(t *testing.T) {
	t.Parallel()
	backend := apitest.New(t)
	begun := make(chan struct{})
	backend.Hooks["Sessions.Get"] = func(ctx context.Context) error { close(begun); <-ctx.Done(); return ctx.Err() }
	opts, log := options(backend)
	opts.Limits.Grace = time.Millisecond
	s := serve(t, opts)
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		response, err := http.Get(s.url + sessionPath())
		if err == nil { // the answer is quicker than the end of the connection
			response.Body.Close()
			if response.StatusCode != http.StatusServiceUnavailable {
				t.Errorf("got %s, want 503: the caller waits", response.Status)
			}
		}
	}()
	<-begun
	s.stop()
	compare.Error(t, "<-s.done", nil, <-s.done)
	<-asked
	compare.Contains(t, "log: want a line that says so", "requests canceled", log.String())
}

func TestServeFails(t *testing.T) {
	t.Parallel()
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	listener.Close()
	opts, _ := options(apitest.New(t))
	if err := api.New(opts).Serve(t.Context(), listener); err == nil {
		t.Error("got nil from a closed listener, want an error")
	}
}

// TestStreamOutlivesBodyLimit: the time limit of a body is not one of the stream
// that answers it.
func TestStreamOutlivesBodyLimit(t *testing.T) {
	t.Parallel()
	opts, _ := options(apitest.New(t))
	question, _ := apitest.Gate(t)
	opts.Limits.ReadBody, opts.Limits.ReadHeader, opts.Limits.Stream.Heartbeat = time.Second, time.Second, 200*time.Millisecond // a busy machine needs a moment for the header
	s := serve(t, opts)
	reader := bufio.NewReader(open(t, "POST", s.url+sessionPath()+"/messages", `{"content":"`+question+`"}`).Body)
	for beats := 0; beats < 12; {
		line, err := reader.ReadString('\n')
		if err != nil {
			t.Fatalf("got %v after %d keep-alives, want the stream to go on", err, beats)
		}
		if line == ": keep-alive\n" {
			beats++
		}
	}
	s.stop()
}

// TestLargeHeader: headers are bounded.
func TestLargeHeader(t *testing.T) {
	t.Parallel()
	opts, _ := options(apitest.New(t))
	opts.Limits.HeaderBytes = 1024
	s := serve(t, opts)
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/healthz", nil)
	r.Header.Set("X-Large", strings.Repeat("x", 1<<16))
	response := must.Get(http.DefaultClient.Do(r))(t)
	response.Body.Close()
	compare.Equal(t, "response.StatusCode: want 431", http.StatusRequestHeaderFieldsTooLarge, response.StatusCode)
}
