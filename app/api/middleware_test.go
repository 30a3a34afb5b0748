package api_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"bobbin/app/api"
	"bobbin/app/api/auth"
	"bobbin/app/core"
	"bobbin/tests/apitest"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

func TestRequestID(t *testing.T) {
	t.Parallel()
	server := api.New(apitest.New(t).Options)
	for _, id := range []string{"abc-1.2_3:4", strings.Repeat("x", 128)} {
		compare.Equal(t, "request id: want the caller's", id, do(server, request("GET", "/healthz", "", "X-Request-ID: "+id)).Header().Get("X-Request-ID"))
	}
	for _, id := range []string{"", "a b", "a\"b", "é", strings.Repeat("x", 129)} {
		got := do(server, request("GET", "/healthz", "", "X-Request-ID: "+id)).Header().Get("X-Request-ID")
		compare.True(t, core.ValidID(got), "got request id %q in place of %q, want a new one", got, id)
	}
}

// TestAuth: the identity decides whose rows are touched; probes need none.
func TestAuth(t *testing.T) {
	t.Parallel()
	opts, log := options(apitest.New(t))
	opts.Auth = auth.New(auth.Options{Keys: []auth.Key{auth.NewKey("ann", "s3cret", core.ReadWrite)}, Required: true, LocalToken: "tok"})
	server := api.New(opts)

	w := do(server, request("GET", sessionPath(), ""))
	wantProblem(t, w, 401, "unauthorized")
	compare.Equal(t, "WWW-Authenticate: want Bearer", `Bearer realm="bobbin"`, w.Header().Get("WWW-Authenticate"))
	wantProblem(t, do(server, request("POST", sessionPath()+"/messages", `{"content":"x"}`, "X-API-Key: guess")), 401, "unauthorized")
	wantProblem(t, do(server, request("GET", "/version", "")), 401, "unauthorized")
	for _, path := range []string{"/healthz", "/readyz"} {
		w := do(server, request("GET", path, ""))
		compare.True(t, w.Code == 200, "got %d for %s without a key, want 200", w.Code, path)
	}
	for header, status := range map[string]int{"Authorization: Bearer s3cret": 404, "X-API-Key: tok": 200} { // it is this machine's own
		compare.Equal(t, "with a key: "+header, status, do(server, request("GET", sessionPath(), "", header)).Code)
	}
	compare.True(t, !strings.Contains(log.String(), "s3cret") && !strings.Contains(log.String(), "guess"), "got a key in the log, want none")
}

// TestAccessLog: one line a request, with facts and without bodies.
func TestAccessLog(t *testing.T) {
	t.Parallel()
	opts, log := options(apitest.New(t))
	server := api.New(opts)
	do(server, request("POST", sessionPath()+"/messages?", `{"content":"very private"}`, "X-Request-ID: r-1"))
	do(server, request("GET", "/nowhere", ""))
	do(server, request("GET", "/healthz", ""))
	lines := log.lines(t, "request")
	must.True(t, len(lines) == 3, "got %d log lines, want 3", len(lines))
	first := lines[0]
	for name, want := range map[string]any{
		"request_id": "r-1", "method": "POST", "path": sessionPath() + "/messages", "route": "/api/v1/sessions/:id/messages",
		"status": 200.0, "owner": core.LocalOwner, "level": "INFO",
	} {
		compare.True(t, first[name] == want, "got %s %v, want %v", name, first[name], want)
	}
	compare.True(t, first["bytes"].(float64) != 0 && first["dur"].(float64) != 0, "got log line %v, want bytes and dur", first)
	compare.True(t, lines[1]["status"] == 404.0 && lines[2]["level"] == "DEBUG", "got log lines %v and %v, want a 404, and the probe at DEBUG", lines[1], lines[2])
	compare.True(t, !strings.Contains(log.String(), "private"), "got a message in the log, want none")
}

// Long answers to GET are compressed for readers who take it; short ones, changes and
// streams are not.
func TestCompression(t *testing.T) {
	t.Parallel()
	server := api.New(apitest.New(t).Options)
	do(server, request("POST", sessionPath()+"/messages", `{"run":false,"content":"`+strings.Repeat("All work and no play. ", 5000)+`"}`))
	const takes = "Accept-Encoding: gzip, br"
	plain := do(server, request("GET", sessionPath()+"/messages", ""))
	w := do(server, request("GET", sessionPath()+"/messages", "", takes))
	if w.Header().Get("Content-Encoding") != "gzip" || !strings.Contains(strings.Join(w.Header().Values("Vary"), ","), "Accept-Encoding") || w.Body.Len() > plain.Body.Len()/20 {
		t.Errorf("got %d of %d bytes with %v, want them compressed", w.Body.Len(), plain.Body.Len(), w.Header())
	}
	r := must.Get(gzip.NewReader(w.Body))(t)
	text := must.Get(io.ReadAll(r))(t)
	compare.Equal(t, "text, valid", []any{plain.Body.String(), true}, []any{string(text), json.Valid(text)})
	for name, w := range map[string]string{
		"nobody asked": plain.Header().Get("Content-Encoding"),
		"refused":      do(server, request("GET", sessionPath()+"/messages", "", "Accept-Encoding: gzip;q=0, br")).Header().Get("Content-Encoding"),
		"short":        do(server, request("GET", "/healthz", "", takes)).Header().Get("Content-Encoding"),
		"a change":     do(server, request("POST", sessionPath()+"/messages", `{"content":"x"}`, takes)).Header().Get("Content-Encoding"),
		"a stream":     do(server, request("GET", runPath()+"/events", "", takes)).Header().Get("Content-Encoding"),
	} {
		compare.Equal(t, name+": the encoding", "", w)
	}
}

// TestRates: a key that asks too often is told when to go on; other keys, and this
// machine's own user, are not held up.
func TestRates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testRates) // no time passes
}

func testRates(t *testing.T) {
	opts, _ := options(apitest.New(t))
	opts.Limits.PerSecond = 1
	opts.Auth = auth.New(auth.Options{Keys: []auth.Key{auth.NewKey("ann", "a", core.ReadWrite), auth.NewKey("bob", "b", core.ReadWrite)}})
	server := api.New(opts)
	for range 10 {
		if w := do(server, request("GET", "/version", "", "X-API-Key: a")); w.Code != 200 {
			t.Fatalf("got %d within the limit, want 200", w.Code)
		}
	}
	w := do(server, request("GET", "/version", "", "X-API-Key: a"))
	p := wantProblem(t, w, 429, "rate_limited")
	compare.True(t, w.Header().Get("Retry-After") == "2" && strings.Contains(p.Detail, "limits.requests_per_second"), "got Retry-After %q and %q, want 2 and what to do", w.Header().Get("Retry-After"), p.Detail)
	for range 15 {
		if w := do(server, request("GET", "/version", "")); w.Code != 200 {
			t.Fatalf("got %d for this machine's own user, want 200", w.Code)
		}
	}
	compare.Equal(t, "for another key", 200, do(server, request("GET", "/version", "", "X-API-Key: b")).Code)
}
