package crash_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/dbtest"
	"bobbin/tests/pgproxy"
)

// A process that is killed after the COMMIT of a request and before its answer leaves the
// request done: the next start gives the repetition what was made.
func TestKilledBetweenCommitAndAnswer(t *testing.T) {
	t.Parallel()
	proxy := pgproxy.New(t, dbtest.PostgresURL(t))
	b := newBobbin(t, place{den.Temp(t), proxy.URL}, "http://127.0.0.1:1")
	b.start(t)
	// Without reuse: the connection to the killed process must not be tried again.
	http := &http.Client{Transport: &http.Transport{DialContext: b.Door.Dial, DisableKeepAlives: true}}
	create := func() (int, string, error) {
		req, err := newKeyedPost(t, "/api/v1/sessions", `{"title":"once"}`)
		if err != nil {
			return 0, "", err
		}
		res, err := http.Do(req)
		if err != nil {
			return 0, "", err
		}
		defer func() { _ = res.Body.Close() }()
		body, err := io.ReadAll(res.Body)
		return res.StatusCode, string(body), err
	}
	committed := proxy.Hold(`INTO "sessions"`)
	cut := make(chan error, 1)
	go func() {
		_, _, err := create()
		cut <- err
	}()
	<-committed
	b.Kill()
	if err := <-cut; err == nil {
		t.Error("the killed process has answered")
	}
	b.start(t)
	status, body, err := create()
	if err != nil || status != 201 || !strings.Contains(body, `"title":"once"`) {
		t.Errorf("got %d %s, %v for the repetition, want the session", status, body, err)
	}
	page, err := client.Call(t.Context(), b.client(t), ops.ListSessions, core.SessionQuery{})
	if err != nil || len(page.Items) != 1 {
		t.Errorf("got %d sessions, %v, want one", len(page.Items), err)
	}
	b.stop(t)
}

// newKeyedPost returns a POST with an idempotency key.
func newKeyedPost(t *testing.T, path, body string) (*http.Request, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost"+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", "k")
	return req, nil
}
