package llmtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// MemoryURL is where a server in memory is.
const MemoryURL = "http://provider.test"

// Server is a scripted provider. It keeps every request.
type Server struct {
	URL       string
	Transport *http.Transport // to a server in memory; nil = any reaches it
	Close     func()          // ends it before the test does

	mu       sync.Mutex
	requests []Received // guarded by mu
}

// Received is a request as the provider got it.
type Received struct {
	Path   string
	Header http.Header
	Body   []byte
}

// JSON returns the body; nil = it is none.
func (r Received) JSON() (body map[string]any) {
	_ = json.Unmarshal(r.Body, &body) // nil then
	return body
}

// Serve starts a provider that answers the requests in order; the last answer is repeated.
func Serve(t testing.TB, answers ...http.HandlerFunc) *Server {
	t.Helper()
	s := &Server{}
	web := httptest.NewServer(s.keeping(answers))
	t.Cleanup(web.Close)
	s.URL, s.Close = web.URL, web.Close
	return s
}

// ServeInMemory is Serve on pipes, so that it works in a synctest bubble: time is fake there, and a
// goroutine that is left behind fails the test.
func ServeInMemory(t testing.TB, answers ...http.HandlerFunc) *Server {
	t.Helper()
	pipes := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	s := &Server{URL: MemoryURL, Transport: &http.Transport{DialContext: pipes.dial}}
	web := &httptest.Server{Listener: pipes, Config: &http.Server{Handler: s.keeping(answers)}} //nolint:gosec // G112: it ends with the test
	web.Start()
	t.Cleanup(func() {
		s.Transport.CloseIdleConnections()
		web.Close()
	})
	return s
}

// keeping returns what keeps each request and answers it; the body can be read again.
func (s *Server) keeping(answers []http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the caller went away
		}
		s.mu.Lock()
		s.requests = append(s.requests, Received{r.URL.Path, r.Header.Clone(), body})
		n := len(s.requests)
		s.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		answers[min(n, len(answers))-1](w, r)
	})
}

// Received returns the requests so far.
func (s *Server) Received() []Received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Last returns the last request; an empty one = none came.
func (s *Server) Last() Received {
	return append([]Received{{}}, s.Received()...)[len(s.Received())]
}

// Stream answers with server-sent events, each flushed.
func Stream(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { SendEvents(w, events...) }
}

// SendEvents sends server-sent events and flushes each.
func SendEvents(w http.ResponseWriter, events ...string) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	for _, e := range events {
		fmt.Fprintf(w, "data: %s\n\n", e)
		_ = http.NewResponseController(w).Flush() // the caller may have gone away
	}
}

// Reply answers with a status and a body; header has lines such as "Retry-After: 7".
func Reply(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for _, h := range header {
			name, value, _ := strings.Cut(h, ": ")
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

// Ask is a request with one message of the user.
func Ask(content string) llm.Request {
	return llm.Request{Messages: []llm.Message{{Role: core.RoleUser, Content: content}}}
}

// Collect calls the model.
func Collect(t testing.TB, m llm.Model, req llm.Request) (llm.Response, error) {
	t.Helper()
	return llm.Collect(m.Stream(t.Context(), req), nil)
}

// pipeListener is a listener on connections in memory.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// Accept returns the next connection.
func (p *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close ends the listener.
func (p *pipeListener) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr is nowhere.
func (p *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "provider.test", Net: "pipe"} }

func (p *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.closed:
		return nil, fmt.Errorf("connection refused: %w", net.ErrClosed)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
