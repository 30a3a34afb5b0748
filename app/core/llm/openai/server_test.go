package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/openai"
)

// server is a scripted provider. Its connections are pipes in memory, so that it
// works in a synctest bubble: time is fake there, and a goroutine that is left
// behind fails the test.
type server struct {
	transport *http.Transport
	mu        sync.Mutex
	requests  []received // guarded by mu
}

// received is a request as the provider got it.
type received struct {
	path   string
	header http.Header
	body   []byte
}

// baseURL is where the scripted provider is.
const baseURL = "http://provider.test/v1"

func serve(t *testing.T, answer http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	listener := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	web := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Errorf("read request: %v", err)
			}
			s.mu.Lock()
			s.requests = append(s.requests, received{r.URL.Path, r.Header.Clone(), body})
			s.mu.Unlock()
			answer(w, r)
		})}}
	web.Start()
	s.transport = &http.Transport{DialContext: listener.dial}
	t.Cleanup(func() {
		s.transport.CloseIdleConnections()
		web.Close()
	})
	return s
}

// model returns a model that talks to the server.
func (s *server) model(t *testing.T, options openai.Options) *openai.Model {
	t.Helper()
	if options.Model == "" {
		options.Model = "test-model"
	}
	if options.BaseURL == "" {
		options.BaseURL = baseURL
	}
	options.Transport = s.transport
	m, err := openai.New(options)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return m
}

// last returns the last request's body as JSON.
func (s *server) last(t *testing.T) map[string]any {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.requests) == 0 {
		t.Fatal("got no request")
	}
	var body map[string]any
	if err := json.Unmarshal(s.requests[len(s.requests)-1].body, &body); err != nil {
		t.Fatalf("the request is not JSON: %v", err)
	}
	return body
}

func (s *server) received() []received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]received(nil), s.requests...)
}

// pipes is a listener on connections in memory.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "provider.test", Net: "pipe"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.closed:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// stream answers with the events, each flushed.
func stream(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { say(w, events...) }
}

// say writes events and flushes each.
func say(w http.ResponseWriter, events ...string) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	for _, e := range events {
		fmt.Fprintf(w, "data: %s\n\n", e)
		w.(http.Flusher).Flush()
	}
}

// refuse answers with a status and a body; header is "Name: value" lines.
func refuse(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for _, h := range header {
			name, value, _ := strings.Cut(h, ": ")
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

// text is an event with text.
func text(s string) string {
	return fmt.Sprintf(`{"choices":[{"index":0,"delta":{"content":%q},"finish_reason":null}]}`, s)
}

// call is an event with pieces of tool calls.
func call(pieces ...string) string {
	return fmt.Sprintf(`{"choices":[{"index":0,"delta":{"tool_calls":[%s]},"finish_reason":null}]}`, strings.Join(pieces, ","))
}

const (
	finishStop  = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	finishTools = `{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`
	done        = "[DONE]"
)

// ask is a request with one message of the user.
func ask(content string) llm.Request {
	return llm.Request{Messages: []llm.Message{{Role: core.RoleUser, Content: content}}}
}

func collect(t *testing.T, m llm.Model, req llm.Request) (llm.Response, error) {
	t.Helper()
	return llm.Collect(m.Stream(t.Context(), req), nil)
}

// calls writes tool calls short, to compare them.
func calls(res llm.Response) string {
	out := make([]string, 0, len(res.ToolCalls))
	for _, c := range res.ToolCalls {
		out = append(out, c.ID+" "+c.Name+" "+c.Arguments)
	}
	return strings.Join(out, " | ")
}
