// Package adapters_test holds the adapters of language models against each other:
// the same scenarios, played by a scripted provider in each adapter's dialect,
// have the same outcome for the caller.
package adapters_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"bobbin/app/core/llm"
	"bobbin/tests/provider"
)

// baseURL is where the scripted provider is.
const baseURL = "http://provider.test"

// key is the API key of the tests. It is no key: nothing may look like one here.
const key = "the-key-of-the-tests"

// server is a scripted provider. Its connections are pipes in memory, so that it
// works in a synctest bubble: time is fake there, and a goroutine that is left
// behind fails the test.
type server struct {
	dialect   dialect
	transport *http.Transport
	mu        sync.Mutex
	requests  []received        // guarded by mu
	signed    map[string]string // signatures, by what the scene has in their place; guarded by mu
	thoughts  provider.Thoughts // that came back, if the dialect is strict; guarded by mu
}

// received is a request as the provider got it.
type received struct {
	path   string
	header http.Header
	body   []byte
}

// start starts a provider that plays the scene on every request; stop ends it.
func start(t *testing.T, d dialect, scene func(*stage)) (s *server, stop func()) {
	t.Helper()
	s = &server{dialect: d, signed: map[string]string{}}
	listener := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	web := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return // the caller went away
			}
			s.mu.Lock()
			s.requests = append(s.requests, received{r.URL.Path, r.Header.Clone(), body})
			n := len(s.requests)
			s.mu.Unlock()
			at := &stage{server: s, dialect: d, w: w, r: r, body: body, n: n}
			play := func(w http.ResponseWriter, r *http.Request) {
				at.w, at.r = w, r
				if d.check == nil || s.check(at) {
					scene(at)
				}
			}
			if d.cloud.rules == nil {
				play(w, r)
				return
			}
			d.cloud.rules.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				at.body, _ = io.ReadAll(r.Body) // it is in memory
				play(w, r)
			})).ServeHTTP(w, withBody(r, body))
		})}}
	web.Start()
	s.transport = &http.Transport{DialContext: listener.dial}
	return s, func() {
		s.transport.CloseIdleConnections()
		web.Close()
	}
}

// withBody returns the request with the body to be read again.
func withBody(r *http.Request, body []byte) *http.Request {
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	return r
}

// model returns a model of the server's dialect that talks to it.
func (s *server) model(t *testing.T, with settings) llm.Model {
	t.Helper()
	m, err := s.dialect.open(s.transport, with)
	if err != nil {
		t.Fatalf("open the model: %v", err)
	}
	return m
}

// received returns the requests, with the signatures that the scene has.
func (s *server) received() []received {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := slices.Clone(s.requests)
	for i := range out {
		for literal, signature := range s.signed {
			out[i].body = bytes.ReplaceAll(out[i].body, []byte(signature), []byte(literal))
		}
	}
	return out
}

// stage is where one request is answered.
type stage struct {
	server  *server
	signer  *provider.Signer // nil = the dialect is not strict
	text    string           // since the last signature
	thought string           // since the last signature
	dialect dialect
	w       http.ResponseWriter
	r       *http.Request
	body    []byte
	n       int // which request it is: 1, 2 …
	writer  writer
}

// say sends the pieces, each at once.
func (s *stage) say(pieces ...piece) {
	if s.writer == nil {
		s.w.Header().Set("Content-Type", "text/event-stream")
		s.w.Header().Set("Request-Id", "req-1")
		s.writer = s.dialect.writer()
	}
	for _, p := range pieces {
		if s.signer != nil {
			p = s.sign(p)
		}
		for _, event := range s.writer.events(p) {
			s.raw(event)
		}
	}
}

// raw sends text as it is.
func (s *stage) raw(text string) {
	fmt.Fprint(s.w, text) // the caller may have gone away
	s.w.(http.Flusher).Flush()
}

// pause waits, unless the caller goes away.
func (s *stage) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.r.Context().Done():
	}
}

// hang waits until the caller has gone away.
func (s *stage) hang() { <-s.r.Context().Done() }

// refuse answers with a status and the dialect's body of an error.
func (s *stage) refuse(status int, word, sentence string, header ...string) {
	for i := 0; i+1 < len(header); i += 2 {
		s.w.Header().Set(header[i], header[i+1])
	}
	s.w.Header().Set("Content-Type", "application/json")
	s.w.Header().Set("Request-Id", "req-1")
	s.w.WriteHeader(status)
	fmt.Fprint(s.w, s.dialect.failure(word, sentence))
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
