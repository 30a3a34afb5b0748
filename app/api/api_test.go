package api_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/api"
	"bobbin/app/api/auth"
	"bobbin/app/core"
	"bobbin/app/core/config"
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
	text    logtext.Log
}

// Write is part of io.Writer.
func (s *stream) Write(p []byte) (int, error) { return s.text.Write(p) }

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
	_, _ = s.Body.WriteString(s.text.String())
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

// TestRunWithoutAnswer: a failed run is an answer like any other, with 200: the request was
// taken and is in the log. The run's status and error say what became of it.
func TestRunWithoutAnswer(t *testing.T) {
	t.Parallel()
	opts, _ := options(apitest.New(t, func(c *config.Config) { c.Models[0].BaseURL += "/nowhere" }))
	w := do(api.New(opts), request("POST", sessionPath()+"/messages", `{"content":"x"}`))
	if w.Code != http.StatusOK || strings.Contains(w.Body.String(), `"message":{`) || !strings.Contains(w.Body.String(), `"status":"failed"`) || !strings.Contains(w.Body.String(), `"error":{`) {
		t.Errorf("got %d %s, want 200 with the failed run and no message", w.Code, w.Body)
	}
}

// TestPendingIsNotTwice: a message that enters the log between the two reads of
// one request is shown once.
func TestPendingIsNotTwice(t *testing.T) {
	t.Parallel()
	backend := apitest.New(t)
	opts, _ := options(backend)
	server := api.New(opts)
	question, open := apitest.Gate(t)
	for range 2 { // one at work, and one that waits
		do(server, request("POST", sessionPath()+"/messages", `{"content":"`+question+`"}`, "Prefer: respond-async"))
	}
	list := do(server, request("GET", sessionPath()+"/messages", "")).Body.String()
	compare.Equal(t, "questions, one of them pending", []any{2, true}, []any{strings.Count(list, question), strings.Contains(list, `"pending":[{`)})
	backend.Hooks["Runs.Pending"] = func(context.Context) error { // read, and now they begin
		clear(backend.Hooks)
		open()
		do(server, request("POST", sessionPath()+"/messages", `{"content":"the last"}`))
		return nil
	}
	if list := do(server, request("GET", sessionPath()+"/messages", "")).Body.String(); strings.Count(list, question) != 2 || !strings.Contains(list, `"pending":[]`) {
		t.Errorf("got %s, want each once and nothing pending that is in the log", list)
	}
}

// Usage is that of whole days of UTC unless the caller says otherwise.
func TestUsage(t *testing.T) {
	t.Parallel()
	opts, _ := options(apitest.New(t))
	var q core.UsageReport
	must.Do(t, json.Unmarshal(do(api.New(opts), request("GET", "/api/v1/usage", "")).Body.Bytes(), &q))
	compare.True(t, q.To.Sub(q.From) == 30*24*time.Hour && !q.To.Before(time.Now()) && q.To.Equal(q.To.Truncate(24*time.Hour)), "got %+v without parameters, want the last 30 days", q)
}

// What a request asks for decides its answer.
func TestArguments(t *testing.T) {
	t.Parallel()
	server := api.New(apitest.New(t).Options)
	for ask, want := range map[string]string{
		"GET usage?group_by=user&from=2026-01-01&to=2026-02-01T12:00:00%2B01:00&limit=1": `{"group_by":"user","from":"2026-01-01T00:00:00Z","to":"2026-02-01T11:00:00Z"`,
		`POST memories/search {"query":"inspection on Friday","limit":1}`:                `The inspection is on Friday.`,
		`POST memories/search {"query":"inspection on Friday","min_score":1}`:            `"items":[]`,
		`POST memories/search {"query":"inspection on Friday","user_id":"u-1"}`:          `"items":[]`,
		`POST memories/search {"query":"inspection on Friday","min_score":"high"}`:       `min_score must be a number, not string`,
		`POST memories/reindex {"all_owners":true,"limit":64}`:                           `{"`,
		"GET sessions/" + apitest.SessionID + "/summaries/1/diff?against=7":              `version 7`,
		"GET runs/" + apitest.RunID + "/calls":                                           `"run_id":"` + apitest.RunID + `"`,
		"GET agents/quick/graph":                                                         `{"nodes":[{"id":"__start__"}`,
		"GET agents/nobody/graph":                                                        `nobody`,
		"POST blobs/" + apitest.BlobID + `/link {"expires_in":"soon"}`:                   `expires_in must be a whole number, not string`,
	} {
		method, path, _ := strings.Cut(ask, " ")
		path, body, _ := strings.Cut(path, " ")
		compare.Contains(t, ask, want, do(server, request(method, "/api/v1/"+path, body)).Body.String())
	}
}

// A page that cannot be written whole is an error.
func TestBrokenPages(t *testing.T) {
	t.Parallel()
	backend := apitest.New(t)
	must.Do(t, backend.Database.Gorm.WithContext(t.Context()).Exec("UPDATE messages SET metadata = '{'").Error)
	opts, _ := options(backend)
	wantProblem(t, do(api.New(opts), request("GET", sessionPath()+"/messages", "")), 500, "internal")
}

// A path has one spelling, so that a proxy in front that looks at paths sees the same as
// the router.
func TestEncodedPaths(t *testing.T) {
	t.Parallel()
	server := api.New(apitest.New(t).Options)
	for _, path := range []string{
		"/api%2fv1/sessions", "/api%2Fv1/sessions", "/api/v1%2fsessions", "/%61pi/v1/sessions", "/metric%73", "/%69nternal/v1/purge/users",
		sessionPath() + "/m%65ssages",
	} {
		for _, method := range []string{"GET", "POST"} {
			wantProblem(t, do(server, request(method, path, "")), 404, "no_such_route")
		}
	}
	for path, code := range map[string]int{
		"/api/v1/sessions":            200,
		"/api/v1/agents/assist%61nt":  200, // of what is not a path there is more than one spelling
		"/api/v1/agents/a%2fb":        404,
		sessionPath() + "%2fmessages": 404,
		"/api/v1/agents/m%C3%BCde":    404,
	} {
		w := do(server, request("GET", path, ""))
		compare.True(t, w.Code == code && (w.Code != 404 || strings.Contains(w.Body.String(), `"code":"not_found"`)), "%s: got %d %s, want %d", path, w.Code, w.Body, code)
	}
}

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
