package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"bobbin/app/api"
	"bobbin/app/core"
	"bobbin/tests/apitest"
	"bobbin/tests/compare"
	"bobbin/tests/logtext"
	"bobbin/tests/must"
)

// log is what the server logs.
type log struct{ *logtext.Log }

// lines returns the log lines whose message is msg.
func (l *log) lines(t *testing.T, msg string) []map[string]any {
	t.Helper()
	var found []map[string]any
	for line := range strings.Lines(l.String()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("log line %q: %v", line, err)
		}
		if fields["msg"] == msg {
			found = append(found, fields)
		}
	}
	return found
}

// options are those of a server over the world, and what it logs.
func options(b *apitest.World) (api.Options, *log) { return b.Options, &log{b.Log} }

// request and do are those of apitest.
func request(method, path, body string, headers ...string) *http.Request {
	return apitest.Request(method, path, body, headers...)
}

func do(h http.Handler, r *http.Request) *httptest.ResponseRecorder { return apitest.Do(h, r) }

// stream is an answer that goes on. Leave ends it.
type stream struct {
	*httptest.ResponseRecorder
	leave   context.CancelFunc
	ended   chan struct{}
	flushed chan struct{}

	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

// Write is part of io.Writer.
func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

// read returns what was written so far.
func (s *stream) read() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// FlushError is part of http.ResponseController.
func (s *stream) FlushError() error {
	s.Flush()
	s.flushed <- struct{}{}
	return nil
}

// watch answers the request until the test leaves, and returns when the answer has begun.
func watch(t *testing.T, h http.Handler, path string, headers ...string) *stream {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	s := &stream{ResponseRecorder: httptest.NewRecorder(), leave: leave, ended: make(chan struct{}), flushed: make(chan struct{}, 1000)}
	go func() {
		defer close(s.ended)
		h.ServeHTTP(s, request("GET", path, "", headers...).WithContext(ctx))
	}()
	t.Cleanup(s.end)
	select {
	case <-s.flushed:
	case <-s.ended:
	}
	return s
}

// answer returns the answer when it has ended.
func (s *stream) answer() *httptest.ResponseRecorder {
	<-s.ended
	_, _ = s.Body.WriteString(s.read())
	return s.ResponseRecorder
}

// end leaves the stream, and returns when it has ended.
func (s *stream) end() {
	s.leave()
	<-s.ended
}

// problem is what a client reads of an error.
type problem struct {
	Type, Title, Detail, Instance, Code string
	Status                              int
	RequestID                           string `json:"request_id"`
	Errors                              []core.FieldError
}

// wantProblem checks that the answer is a problem of the status and code, whole
// and with the right media type.
func wantProblem(t *testing.T, w *httptest.ResponseRecorder, status int, code string) problem {
	t.Helper()
	must.True(t, w.Code == status, "got status %d, want %d; body %s", w.Code, status, w.Body)
	compare.Equal(t, "content type", "application/problem+json", w.Header().Get("Content-Type"))
	var p problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatalf("body %q is not a problem: %v", w.Body, err)
	}
	compare.Equal(t, "code, status, type", []any{code, status, "urn:bobbin:problem:" + code}, []any{p.Code, p.Status, p.Type})
	compare.True(t, p.Title != "" && p.Detail != "" && p.Instance != "", "got problem %+v, want title, detail and instance", p)
	compare.True(t, p.RequestID != "" && p.RequestID == w.Header().Get("X-Request-ID"), "got request id %q in the body and %q in the header, want the same", p.RequestID, w.Header().Get("X-Request-ID"))
	return p
}

// TestMain runs the tests.
func TestMain(m *testing.M) { apitest.Main(m) }

const missing = apitest.MissingID

func sessionPath() string { return "/api/v1/sessions/" + apitest.SessionID }
func runPath() string     { return "/api/v1/runs/" + apitest.RunID }
