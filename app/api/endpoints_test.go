package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"bobbin/app/api"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apitest"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

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
	if q.To.Sub(q.From) != 30*24*time.Hour || q.To.Before(time.Now()) || !q.To.Equal(q.To.Truncate(24*time.Hour)) {
		t.Errorf("got %+v without parameters, want the last 30 days", q)
	}
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
		if w := do(server, request("GET", path, "")); w.Code != code || w.Code == 404 && !strings.Contains(w.Body.String(), `"code":"not_found"`) {
			t.Errorf("%s: got %d %s, want %d", path, w.Code, w.Body, code)
		}
	}
}
