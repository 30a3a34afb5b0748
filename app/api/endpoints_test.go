package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"bobbin/app/api"
	"bobbin/app/core"
	"bobbin/tests/apitest"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// TestRunWithoutAnswer: a failed run is an answer like any other, with 200: the request was
// taken and is in the log. The run's status and error say what became of it.
func TestRunWithoutAnswer(t *testing.T) {
	t.Parallel()
	backend := apitest.New()
	backend.Run.Status, backend.Run.AnswerID = core.RunFailed, ""
	backend.Run.Error = &core.RunError{Code: "model_auth", Message: "the provider refused the key"}
	opts, _ := options(backend)
	w := do(api.New(opts), request("POST", sessionPath+"/messages", `{"content":"x"}`))
	if w.Code != http.StatusOK || strings.Contains(w.Body.String(), `"message":{`) || !strings.Contains(w.Body.String(), "model_auth") {
		t.Errorf("got %d %s, want 200 with the failed run and no message", w.Code, w.Body)
	}
}

// TestPendingIsNotTwice: a message that enters the log between the two reads of
// one request is shown once.
func TestPendingIsNotTwice(t *testing.T) {
	t.Parallel()
	backend := apitest.New()
	backend.Queued.UserMessageID = apitest.UserID
	opts, _ := options(backend)
	w := do(api.New(opts), request("GET", sessionPath+"/messages", ""))
	compare.Contains(t, "w.Body: want nothing pending that is in the log", `"pending":[]`, w.Body.String())
}

// Usage is that of whole days of UTC unless the caller says otherwise.
func TestUsage(t *testing.T) {
	t.Parallel()
	backend := apitest.New()
	opts, _ := options(backend)
	do(api.New(opts), request("GET", "/api/v1/usage", ""))
	q, ok := backend.Calls()[0].Args[0].(core.UsageQuery)
	if !ok || q.To.Sub(q.From) != 30*24*time.Hour || q.To.Before(time.Now()) || !q.To.Equal(q.To.Truncate(24*time.Hour)) {
		t.Errorf("got %+v without parameters, want the last 30 days", q)
	}
}

// What a request asks for is asked of the parts.
func TestArguments(t *testing.T) {
	t.Parallel()
	for ask, want := range map[string]string{
		"GET usage?group_by=user&from=2026-01-01&to=2026-02-01T12:00:00%2B01:00&limit=1":   `Usage.Usage "" [{"GroupBy":"user","From":"2026-01-01T00:00:00Z","To":"2026-02-01T11:00:00Z","Largest":false,"Limit":1,"Cursor":"","Bytes":0}]`,
		`POST memories/search {"query":"When?","user_id":"u-1","limit":3,"min_score":0.1}`: `Memories.Search "u-1" [{"query":"When?","limit":3,"min_score":0.1}]`,
		`POST memories/reindex {"all_owners":true,"cursor":"abc","limit":64}`:              `Memories.Reindex "" [{"limit":64,"cursor":"abc","all_owners":true}]`,
		"GET sessions/" + string(apitest.SessionID) + "/summaries/2/diff?against=1":        `Diff "" ["` + string(apitest.SessionID) + `",2,1]`,
		"GET runs/" + string(apitest.RunID) + "/calls":                                     `Usage.OfRun "" ["` + string(apitest.RunID) + `"]`,
		"GET agents/quick/graph": `Graph "" ["quick"]`,
	} {
		backend := apitest.New()
		opts, _ := options(backend)
		got := ""
		opts.Services.Graph = func(name string) (core.GraphView, error) {
			got = fmt.Sprintf("Graph %q [%q]", "", name)
			return core.GraphView{}, nil
		}
		method, path, _ := strings.Cut(ask, " ")
		path, body, _ := strings.Cut(path, " ")
		do(api.New(opts), request(method, "/api/v1/"+path, body))
		if calls := backend.Calls(); len(calls) > 0 {
			last := calls[len(calls)-1]
			got = fmt.Sprintf("%s %q %s", last.Method, last.Scope.User, must.Get(json.Marshal(last.Args))(t))
		}
		compare.Equal(t, ask, want, got)
	}
}
