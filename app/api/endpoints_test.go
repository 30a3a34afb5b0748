package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"bobbin/app/api"
	"bobbin/app/core"
	"bobbin/tests/apitest"
	"bobbin/tests/compare"
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
