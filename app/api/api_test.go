package api_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"bobbin/app/api"
	"bobbin/app/api/auth"
	"bobbin/app/api/handlers"
	"bobbin/app/core"
	"bobbin/tests/apitest"
	"bobbin/tests/compare"
	"bobbin/tests/logtext"
)

// log is what the server logs.
type log struct{ logtext.Log }

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

// options are those of a server over the backend, open to this machine.
func options(b *apitest.Backend) (api.Options, *log) {
	lines := &log{}
	return api.Options{
		Services: b.Services(),
		Keys:     &apitest.Keys{},
		Limits:   api.DefaultLimits(),
		Metrics:  handlers.MetricsOptions{Expose: apitest.Metrics{}.Expose},
		Auth:     auth.New(auth.Options{}),
		Build:    handlers.Build{Version: "1.2.3", Commit: "abc", Date: "2026-01-02", Go: "go1.26"},
		Logger:   slog.New(slog.NewJSONHandler(lines, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}, lines
}

// request returns a request as a program on this machine sends it. Each header is
// "Name: value"; a body is JSON unless a header says otherwise.
func request(method, path, body string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if body == "" {
		r = httptest.NewRequest(method, path, nil)
	} else {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Host, r.RemoteAddr = "localhost:8080", "127.0.0.1:40000"
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	return r
}

// do answers the request.
func do(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
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
	if w.Code != status {
		t.Fatalf("got status %d, want %d; body %s", w.Code, status, w.Body)
	}
	compare.Equal(t, "content type", "application/problem+json", w.Header().Get("Content-Type"))
	var p problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatalf("body %q is not a problem: %v", w.Body, err)
	}
	if p.Code != code || p.Status != status || p.Type != "urn:bobbin:problem:"+code {
		t.Errorf("got code %q, status %d, type %q, want %q, %d", p.Code, p.Status, p.Type, code, status)
	}
	if p.Title == "" || p.Detail == "" || p.Instance == "" {
		t.Errorf("got problem %+v, want title, detail and instance", p)
	}
	if p.RequestID == "" || p.RequestID != w.Header().Get("X-Request-ID") {
		t.Errorf("got request id %q in the body and %q in the header, want the same", p.RequestID, w.Header().Get("X-Request-ID"))
	}
	return p
}

const (
	sessionPath = "/api/v1/sessions/" + string(apitest.SessionID)
	runPath     = "/api/v1/runs/" + string(apitest.RunID)
	missing     = apitest.MissingID
)
