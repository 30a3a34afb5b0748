package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"bobbin/app/api"
	"bobbin/app/api/handlers"
	"bobbin/app/core"
	"bobbin/tests/apitest"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// failing returns a hook that answers err.
func failing(err error) apitest.Hook {
	return func(context.Context) error { return err }
}

// TestKinds: every kind of error has its status, and what is not a core.Error
// shows nothing of itself.
func TestKinds(t *testing.T) {
	t.Parallel()
	shown := func(kind error) error { return fmt.Errorf("wrapped: %w", core.Errorf(kind, "in words")) }
	tests := []struct {
		err    error
		status int
		code   string
		logged bool
	}{
		{shown(core.ErrInvalid), 422, "invalid", false},
		{shown(core.ErrUnauthorized), 401, "unauthorized", false},
		{shown(core.ErrForbidden), 403, "forbidden", false},
		{shown(core.ErrNotFound), 404, "not_found", false},
		{shown(core.ErrConflict), 409, "conflict", false},
		{shown(core.ErrStale), 409, "stale", false},
		{shown(core.ErrCanceled), 409, "canceled", false},
		{shown(core.ErrTooLarge), 413, "too_large", false},
		{shown(core.ErrUnprocessable), 422, "unprocessable", false},
		{shown(core.ErrContextFloor), 422, "context_floor", false},
		{shown(core.ErrRateLimited), 429, "rate_limited", false},
		{shown(core.ErrUnavailable), 503, "unavailable", true},
		{shown(core.ErrModel), 502, "model", true},
		{shown(core.ErrTimeout), 504, "timeout", true},
		{&core.Error{Kind: core.ErrInvalid, Code: "own_code", Message: "in words"}, 422, "own_code", false},
		// The cause's kind does not count.
		{&core.Error{Kind: core.ErrTimeout, Message: "in words", Err: fmt.Errorf("secret: %w", core.ErrInvalid)}, 504, "timeout", true},
		{fmt.Errorf("secret: %w", core.ErrModel), 502, "model", true},
		{fmt.Errorf("secret: %w", core.ErrNotFound), 404, "not_found", true},
		{errors.New("secret"), 500, "internal", true},
		{&core.Error{Kind: errors.New("of no kind"), Message: "secret"}, 500, "internal", true},
		{&core.Error{Message: "secret", Err: core.ErrNotFound}, 404, "not_found", true},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%v %s", tt.err, tt.code), func(t *testing.T) {
			t.Parallel()
			backend := apitest.New(t)
			backend.Hooks["Sessions.Get"] = failing(tt.err)
			opts, log := options(backend)
			w := do(api.New(opts), request("GET", sessionPath(), ""))
			p := wantProblem(t, w, tt.status, tt.code)
			var coreErr *core.Error
			compare.True(t, !errors.As(tt.err, &coreErr) || coreErr.Message != "in words" || p.Detail == "in words", "got detail %q, want the message", p.Detail)
			compare.True(t, !strings.Contains(w.Body.String(), "secret") && !strings.Contains(w.Body.String(), "wrapped"), "got body %s, which shows what is internal", w.Body)
			lines := log.lines(t, "request failed")
			logged := len(lines) == 1
			compare.True(t, logged == tt.logged && len(lines) <= 1, "got %d log lines, want logged once: %v", len(lines), tt.logged)
			for _, line := range lines {
				cause := strings.Contains(fmt.Sprint(line["err"]), "secret") || tt.err.Error() == "wrapped: in words"
				compare.True(t, cause && line["request_id"] == p.RequestID && (tt.status != 500 || line["level"] == "ERROR"), "got log line %v, want the cause, the request id %s, and level ERROR for 500", line, p.RequestID)
			}
			compare.Equal(t, "has Retry-After", tt.status == 429 || tt.status == 503, w.Header().Get("Retry-After") != "")
			compare.Equal(t, "has WWW-Authenticate", tt.status == 401, w.Header().Get("WWW-Authenticate") != "")
		})
	}
}

// TestPartsFail: no handler of several steps swallows the error of a part behind it.
func TestPartsFail(t *testing.T) {
	t.Parallel()
	tests := []struct{ hook, method, path, body string }{
		{"Sessions.Get", "GET", sessionPath() + "/messages", ""},
		{"Runs.Pending", "GET", sessionPath() + "/messages", ""},
		{"Messages.List", "GET", sessionPath() + "/messages", ""},
		{"Runs.Accept", "POST", sessionPath() + "/messages", `{"content":"x"}`},
		{"Sessions.Get", "GET", sessionPath() + "/events", ""},
		{"Sessions.Get", "GET", sessionPath() + "/summaries", ""},
		{"Runs.Get", "GET", runPath() + "/events", ""},
	}
	for _, tt := range tests {
		t.Run(tt.hook+" "+tt.method+" "+tt.path, func(t *testing.T) {
			t.Parallel()
			backend := apitest.New(t)
			backend.Hooks[tt.hook] = failing(core.Errorf(core.ErrConflict, "not now"))
			opts, _ := options(backend)
			wantProblem(t, do(api.New(opts), request(tt.method, tt.path, tt.body)), 409, "conflict")
		})
	}
}

// What an error quotes is as it was written, in each protocol.
func TestErrorsAreReadable(t *testing.T) {
	t.Parallel()
	opts, _ := options(apitest.New(t))
	for path, want := range map[string]string{"/api/v1/sessions/<x>": "session <x> does not exist", "/v1/a&b": "no endpoint /v1/a&b"} {
		w := do(api.New(opts), request("GET", path, ""))
		if body := w.Body.String(); w.Code != http.StatusNotFound || !strings.Contains(body, want) {
			t.Errorf("%s: got %d %s, want %q in it", path, w.Code, body, want)
		}
	}
}

// TestPanic: a panic is an internal error with its stack in the log, in the
// handler and in the goroutine that reads a stream.
func TestPanic(t *testing.T) {
	t.Parallel()
	backend := apitest.New(t)
	backend.Hooks["Sessions.Get"] = func(context.Context) error { panic("boom") }
	backend.Hooks["Events.Last"] = backend.Hooks["Sessions.Get"]
	opts, log := options(backend)
	server := api.New(opts)
	wantProblem(t, do(server, request("GET", sessionPath(), "")), 500, "internal")
	w := do(server, request("GET", runPath()+"/events", ""))
	compare.Contains(t, "stream with the error", "event: error\ndata: {", w.Body.String())
	lines := log.lines(t, "panic")
	must.True(t, len(lines) == 2, "got %d log lines, want 2", len(lines))
	for _, line := range lines {
		compare.True(t, line["err"] == "boom" && strings.Contains(line["stack"].(string), "errors_test.go") && line["request_id"] != "", "got log line %v, want boom, its stack and the request id", line)
	}
}

func TestReady(t *testing.T) {
	t.Parallel()
	opts, log := options(apitest.New(t))
	opts.Checks = []handlers.Check{
		{Name: "database", Run: func(context.Context) error { return nil }},
		{Name: "migrations", Run: failing(errors.New("version 3 is missing"))},
		{Name: "slow", Run: func(ctx context.Context) error {
			if _, limited := ctx.Deadline(); !limited {
				return nil
			}
			return errors.New("limited")
		}},
	}
	w := do(api.New(opts), request("GET", "/readyz", "", "X-Forwarded-For: 203.0.113.9"))
	p := wantProblem(t, w, 503, "not_ready")
	want := []core.FieldError{{Field: "migrations", Detail: "failed"}, {Field: "slow", Detail: "failed"}}
	compare.Equal(t, "errors", want, p.Errors)
	lines := log.lines(t, "request failed")
	compare.True(t, len(lines) == 1 && strings.Contains(lines[0]["err"].(string), "version 3"), "got log lines %v, want one with the cause", lines)
}

// A browser that opens the printed address finds the page, and HEAD what GET has.
func TestFirstLook(t *testing.T) {
	t.Parallel()
	server := api.New(apitest.New(t).Options)
	for _, tt := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/", http.StatusOK}, {"HEAD", "/", http.StatusOK}, {"HEAD", "/docs", http.StatusOK}, {"HEAD", "/openapi.json", http.StatusOK},
		{"GET", "/docs/icon.svg", http.StatusOK}, {"HEAD", "/version", http.StatusOK}, {"HEAD", "/api/v1/agents", http.StatusOK},
		{"HEAD", "/api/v1/sessions/x/events", http.StatusMethodNotAllowed}, {"POST", "/docs", http.StatusMethodNotAllowed}, {"POST", "/", http.StatusMethodNotAllowed},
	} {
		r := httptest.NewRequestWithContext(t.Context(), tt.method, "http://localhost"+tt.path, nil)
		r.RemoteAddr = "127.0.0.1:4711"
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		compare.True(t, w.Code == tt.status && !strings.Contains(w.Body.String(), "/internal/"), "%s %s: got %d, %.200q, want %d and nothing of the operator's", tt.method, tt.path, w.Code, w.Body, tt.status)
	}
}
