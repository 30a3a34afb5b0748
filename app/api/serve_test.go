package api_test

import (
	"bufio"
	"context"
	"io"
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
	must.True(t, err == nil, "%s %s: %v", method, url, err)
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
			compare.True(t, response.StatusCode == http.StatusServiceUnavailable, "got %s, want 503: the caller waits", response.Status)
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
	compare.True(t, api.New(opts).Serve(t.Context(), listener) != nil, "got nil from a closed listener, want an error")
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
		must.True(t, err == nil, "got %v after %d keep-alives, want the stream to go on", err, beats)
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

// Until the server is ready only probes are answered; what came early is answered then.
func TestNobodyIsLetInBeforeTheStartIsOver(t *testing.T) {
	t.Parallel()
	ready := make(chan struct{})
	opts, _ := options(apitest.New(t))
	opts.Ready = ready
	s := serve(t, opts)
	early := make(chan int)
	go func() {
		response, err := http.Get(s.url + sessionPath())
		if err != nil {
			early <- 0
			return
		}
		response.Body.Close()
		early <- response.StatusCode
	}()
	compare.Equal(t, "from /healthz: want the process lives", 200, open(t, "GET", s.url+"/healthz", "").StatusCode)
	r := open(t, "GET", s.url+"/readyz", "")
	body, _ := io.ReadAll(r.Body)
	compare.True(t, r.StatusCode == 503 && strings.Contains(string(body), `"runs"`) && r.Header.Get("Retry-After") != "", "got %d %s from /readyz, want 503 and what is missing", r.StatusCode, body)
	select {
	case got := <-early:
		t.Errorf("got %d before the server was ready, want no answer", got)
	default:
	}
	close(ready)
	compare.Equal(t, "for the early request", 200, <-early)
	compare.Equal(t, "from /readyz at last", 200, open(t, "GET", s.url+"/readyz", "").StatusCode)
}

// Slack's requests are only stored, and Slack wants a quick answer: they do not wait for the start
// to be over.
func TestSlackDoesNotWaitForTheStart(t *testing.T) {
	t.Parallel()
	opts, _ := options(apitest.New(t))
	opts.Ready = make(chan struct{})
	opts.Slack = map[string]http.HandlerFunc{"POST /slack/events": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }}
	compare.Equal(t, "want the answer of Slack's handler", http.StatusAccepted, open(t, "POST", serve(t, opts).url+"/slack/events", "{}").StatusCode)
}

// A server that gets more messages than it can answer refuses what starts a run, before it reads the body
// and asks who sends it; everything else is answered.
func TestOverloadedServerRefusesMessages(t *testing.T) {
	t.Parallel()
	opts, _ := options(apitest.New(t))
	opts.Overloaded = func() bool { return true }
	s := serve(t, opts)
	for path, method := range map[string]string{sessionPath() + "/messages": "POST", sessionPath() + "/messages/m": "PATCH", sessionPath() + "/messages/m/regenerate": "POST", "/v1/chat/completions": "POST", "/v1/responses": "POST"} {
		r := open(t, method, s.url+path, "no JSON")
		if body, _ := io.ReadAll(r.Body); r.StatusCode != 503 || !strings.Contains(string(body), "overloaded") || r.Header.Get("Retry-After") == "" {
			t.Errorf("%s: got %d %s, want 503 and when to ask again", path, r.StatusCode, body)
		}
	}
	for _, path := range []string{sessionPath(), sessionPath() + "/messages"} {
		compare.Equal(t, path, 200, open(t, "GET", s.url+path, "").StatusCode)
	}
}

// A start that takes long is told to who comes, before clients give up by themselves.
func TestLongStart(t *testing.T) {
	t.Parallel()
	opts, _ := options(apitest.New(t))
	opts.Ready, opts.Limits.Start = make(chan struct{}), time.Millisecond
	r := open(t, "GET", serve(t, opts).url+sessionPath(), "")
	body := string(must.Get(io.ReadAll(r.Body))(t))
	compare.True(t, r.StatusCode == 503 && r.Header.Get("Retry-After") != "" && strings.Contains(body, `"not_ready"`), "got %d, Retry-After %q, %s, want 503, not_ready and when to ask again", r.StatusCode, r.Header.Get("Retry-After"), body)
}

// While the server stops the feeds of sessions end at once, a run's stream goes on, new requests are
// refused and told to come again, also by connections that are new, and until the work beside them is
// over. Only then the server ends.
func TestStop(t *testing.T) {
	t.Parallel()
	opts, _ := options(apitest.New(t))
	question, finish := apitest.Gate(t)
	work := make(chan struct{})
	opts.Work = work
	s := serve(t, opts)
	feed := open(t, "GET", s.url+sessionPath()+"/events", "")
	run := bufio.NewReader(open(t, "POST", s.url+sessionPath()+"/messages", `{"content":"`+question+`"}`).Body)
	if line, err := run.ReadString('\n'); err != nil || line != ": connected\n" {
		t.Fatalf("got line %q, %v, want a comment at once", line, err)
	}
	s.stop()
	rest := string(must.Get(io.ReadAll(feed.Body))(t))
	compare.True(t, strings.HasPrefix(rest, ": connected\n") && strings.HasSuffix(rest, "\n\n"), "got the feed %q, want its end in order", rest)
	for open(t, "GET", s.url+"/readyz", "").StatusCode == 200 { // the stop has not begun yet
	}
	refused := func(when string) {
		t.Helper()
		r := open(t, "GET", s.url+sessionPath(), "")
		body := string(must.Get(io.ReadAll(r.Body))(t))
		if r.StatusCode != 503 || r.Header.Get("Retry-After") == "" || !r.Close || !strings.Contains(body, `"stopping"`) {
			t.Errorf("%s: got %d, Retry-After %q, closed %v, %s, want 503, when to ask again, a closed connection, and why", when, r.StatusCode, r.Header.Get("Retry-After"), r.Close, body)
		}
		compare.Equal(t, when+": from /healthz", 200, open(t, "GET", s.url+"/healthz", "").StatusCode)
	}
	refused("while a run is at work")
	finish()
	compare.Contains(t, "stream with the run's end", "event: run.succeeded", string(must.Get(io.ReadAll(run))(t)))
	refused("while other work is in hand")
	close(work)
	compare.Error(t, "from a stop in order", nil, <-s.done)
	compare.True(t, compare.ErrorOf(net.Dial("tcp", s.addr)) != nil, "got a connection after the stop, want none")
}
