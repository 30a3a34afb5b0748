package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// Without NATS a replica serves all the same: it is ready, and says that it is degraded.
func TestReadyWithoutNATS(t *testing.T) {
	t.Parallel()
	h := apptest.New(t, dbtest.MigratedPostgresURL(t), func(c *config.Config) { c.NATS.URL = config.NewSecret("nats://127.0.0.1:1") })
	awaitReadiness(t, h, http.StatusOK, `"status":"degraded"`)
	awaitReadiness(t, h, http.StatusOK, `"nats":"not connected`)
	answer, err := h.SendAndWait(t.Context(), core.SendMessage{SessionID: apptest.NewSession(t, h.Client, ops.NewSession{}), Content: "hello"})
	if err != nil || answer.Run.Status != core.RunSucceeded {
		t.Errorf("got %+v, %v, want an answer without NATS", answer.Run, err)
	}
}

// A database that answers and takes no writes makes the server unready. Whoever wants
// something stored is told to come again, and nothing internal. The run at work ends well.
func TestReadOnlyDatabase(t *testing.T) {
	t.Parallel()
	url := dbtest.MigratedPostgresURL(t)
	p, gate := newHolding(t)
	h := apptest.New(t, url, apptest.WithModel("house", 8192, 2048, p))
	id := apptest.NewSession(t, h.Client, ops.NewSession{})
	run := apptest.Must(h.SendAsync(t.Context(), core.SendMessage{SessionID: id, Content: "hold this"}))(t)
	<-gate.arrived
	setReadOnly(t, url, true)
	refused(t, h, "database_read_only")
	awaitReadiness(t, h, http.StatusServiceUnavailable, `"field":"database","detail":"the database is currently read-only`)
	if _, err := client.Call(t.Context(), h, ops.GetSession, ops.InSession{SessionID: id}); err != nil {
		t.Errorf("read: %v, want the session", err)
	}
	gate.open()
	setReadOnly(t, url, false)
	awaitReadiness(t, h, http.StatusOK, `"database":"ok"`)
	wantSucceeded(t, h, run.ID)
}

// setReadOnly makes the database take no writes from now on, as a standby after a failover
// does, or take them again.
func setReadOnly(t *testing.T, url string, on bool) {
	t.Helper()
	server, name := serverOf(t, url)
	conn := apptest.Must(pgx.Connect(t.Context(), server))(t)
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	for _, stmt := range []string{
		fmt.Sprintf("ALTER DATABASE %s SET default_transaction_read_only = %t", name, on),
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '" + name + "'",
	} {
		must.Get(conn.Exec(t.Context(), stmt))(t)
	}
}

// refused sends requests that store something until they are refused with the code, and
// checks what is told then.
func refused(t *testing.T, h *apptest.Bobbin, code string) {
	t.Helper()
	body := `{"instructions":"` + strings.Repeat("x", 16<<10) + `"}`
	for limit := time.Now().Add(apptest.Patience); ; {
		res, err := h.HTTP.Post(h.URL+"/api/v1/sessions", "application/json", strings.NewReader(body)) //nolint:noctx // it is short
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		var problem struct{ Code string }
		if err != nil || json.Unmarshal(raw, &problem) != nil {
			t.Fatalf("answer %s, %v", raw, err)
		}
		if problem.Code == code {
			if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
				t.Errorf("got %d, Retry-After %q, %s, want 503 with a time", res.StatusCode, res.Header.Get("Retry-After"), raw)
			}
			return
		}
		if res.StatusCode/100 != 2 && problem.Code != "database_unavailable" || time.Now().After(limit) {
			t.Fatalf("got %d %s, want %s in the end", res.StatusCode, raw, code)
		}
	}
}

// wantSucceeded waits for the run's end.
func wantSucceeded(t *testing.T, h *apptest.Bobbin, id core.RunID) {
	t.Helper()
	for _, err := range h.WatchRun(t.Context(), id, core.Cursor{}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if run, err := client.Call(t.Context(), h, ops.GetRun, ops.InRun{RunID: id}); err != nil || run.Status != core.RunSucceeded {
		t.Errorf("got %+v, %v, want the run answered", run, err)
	}
}
