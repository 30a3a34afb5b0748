package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// Without NATS a replica serves all the same: it is ready, and says that it is degraded.
func TestReadyWithoutNATS(t *testing.T) {
	t.Parallel()
	h := apptest.New(t, dbtest.MigratedPostgresURL(t), func(c *config.Config) { c.NATS.URL = config.NewSecret("nats://127.0.0.1:1") })
	awaitReadiness(t, h, http.StatusOK, `"status":"degraded"`)
	awaitReadiness(t, h, http.StatusOK, `"nats":"not connected`)
	answer, err := apptest.SendAndWait(t.Context(), h, core.SendMessage{SessionID: apptest.NewSession(t, h.Client, ops.NewSession{}), Content: "hello"})
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
	run := must.Get(apptest.SendAsync(t.Context(), h, core.SendMessage{SessionID: id, Content: "hold this"}))(t)
	<-gate.arrived
	setReadOnly(t, url, true)
	refused(t, h, "database_read_only")
	awaitReadiness(t, h, http.StatusServiceUnavailable, `"field":"database","detail":"the database is currently read-only`)
	compare.Error(t, "read: want the session", nil, compare.ErrorOf(client.Call(t.Context(), h, ops.GetSession, ops.InSession{SessionID: id})))
	gate.open()
	setReadOnly(t, url, false)
	awaitReadiness(t, h, http.StatusOK, `"database":"ok"`)
	compare.Equal(t, "run", core.RunSucceeded, apptest.ReadTurn(t, h.WatchRun(t.Context(), run.ID, core.Cursor{})).Run.Status)
}

// setReadOnly makes the database take no writes from now on, as a standby after a failover
// does, or take them again.
func setReadOnly(t *testing.T, url string, on bool) {
	t.Helper()
	alterDatabase(t, url, fmt.Sprintf("SET default_transaction_read_only = %t", on), true)
}

// alterDatabase alters the database from outside of it, and breaks its connections if that is wanted.
func alterDatabase(t *testing.T, raw, change string, breaks bool) {
	t.Helper()
	u := must.Get(url.Parse(raw))(t)
	name := strings.TrimPrefix(u.Path, "/")
	u.Path = "/postgres"
	conn := must.Get(pgx.Connect(t.Context(), u.String()))(t)
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	must.Get(conn.Exec(t.Context(), "ALTER DATABASE "+name+" "+change))(t)
	if breaks {
		must.Get(conn.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+name+"'"))(t)
	}
}

// refused sends requests that store something until they are refused with the code, and
// checks what is told then.
func refused(t *testing.T, h *apptest.Bobbin, code string) {
	t.Helper()
	for limit := time.Now().Add(apptest.Patience); ; {
		_, err := client.Call(t.Context(), h, ops.CreateSession, ops.NewSession{Instructions: strings.Repeat("x", 16<<10)})
		problem, _ := errors.AsType[*client.ProblemError](err)
		switch {
		case problem != nil && problem.Code == code:
			if problem.Status != http.StatusServiceUnavailable || problem.RetryAfter <= 0 {
				t.Errorf("got %+v, want 503 with a time", problem)
			}
			return
		case err != nil && (problem == nil || problem.Code != "database_unavailable") || time.Now().After(limit):
			t.Fatalf("got %v, want %s in the end", err, code)
		}
	}
}

// A database that is gone, or of an older schema, makes the server unready, and one that is back
// ready again; meanwhile the process lives.
func TestReadyWithoutDatabase(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		h := apptest.New(t, url)
		id := apptest.NewSession(t, h.Client, ops.NewSession{})
		const older = "UPDATE goose_db_version SET version_id = -version_id"
		must.Do(t, dbtest.Open(t, url).Gorm.Exec(older).Error)
		awaitReadiness(t, h, http.StatusServiceUnavailable, `"field":"migrations"`)
		must.Do(t, dbtest.Open(t, url).Gorm.Exec(older).Error)
		awaitReadiness(t, h, http.StatusOK, `"migrations":"ok"`)
		back := takeAway(t, url)
		awaitReadiness(t, h, http.StatusServiceUnavailable, `"field":"database"`)
		if status, _, _ := followPath(h, "/healthz"); status != http.StatusOK {
			t.Errorf("/healthz answers %d without the database, want 200: a restart would not help", status)
		}
		back()
		awaitReadiness(t, h, http.StatusOK, `"runs":"ok"`)
		answered := func() bool { // connections that were cut are found out one by one
			a, err := apptest.SendAndWait(t.Context(), h, core.SendMessage{SessionID: id, Content: "Are you back?"})
			return err == nil && a.Run.Status == core.RunSucceeded
		}
		for limit := time.Now().Add(apptest.Patience); !answered(); {
			if time.Now().After(limit) {
				t.Fatal("no answer with the database back")
			}
			apptest.PauseBriefly(t)
		}
	})
}

// takeAway makes the database unreachable, until back is called.
func takeAway(t *testing.T, url string) (back func()) {
	t.Helper()
	if path, ok := strings.CutPrefix(url, "sqlite://"); ok {
		must.Do(t, os.Rename(path, path+".away"))
		return func() {
			must.Do(t, os.Rename(path+".away", path))
		}
	}
	alterDatabase(t, url, "ALLOW_CONNECTIONS false", true)
	return func() { alterDatabase(t, url, "ALLOW_CONNECTIONS true", false) }
}

// becomes waits until the readiness has the status, with the words in the answer.
func awaitReadiness(t *testing.T, h *apptest.Bobbin, want int, words string) {
	t.Helper()
	limit := time.Now().Add(apptest.Patience)
	for {
		status, _, body := followPath(h, "/readyz")
		if status == want && strings.Contains(body, words) {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("/readyz answers %d %s, want %d and %s", status, body, want, words)
		}
		apptest.PauseBriefly(t)
	}
}
