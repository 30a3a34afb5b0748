package e2e_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"bobbin/app/api/ops"
	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// A database that is gone makes the server unready, and one that is back ready again;
// meanwhile the process lives.
func TestReadyWithoutDatabase(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		h := apptest.New(t, url)
		id := apptest.NewSession(t, h.Client, ops.NewSession{})
		awaitReadiness(t, h, http.StatusOK, `"database":"ok"`)
		back := takeAway(t, url)
		awaitReadiness(t, h, http.StatusServiceUnavailable, `"field":"database"`)
		if status, _ := probe(t, h, "/healthz"); status != http.StatusOK {
			t.Errorf("/healthz answers %d without the database, want 200: a restart would not help", status)
		}
		back()
		awaitReadiness(t, h, http.StatusOK, `"runs":"ok"`)
		answered := func() bool { // connections that were cut are found out one by one
			a, err := h.SendAndWait(t.Context(), core.SendMessage{SessionID: id, Content: "Are you back?"})
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
	server, name := serverOf(t, url)
	do := func(stmts ...string) {
		t.Helper()
		conn := apptest.Must(pgx.Connect(t.Context(), server))(t)
		defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
		for _, stmt := range stmts {
			must.Get(conn.Exec(t.Context(), stmt))(t)
		}
	}
	do("ALTER DATABASE "+name+" ALLOW_CONNECTIONS false", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+name+"'")
	return func() { do("ALTER DATABASE " + name + " ALLOW_CONNECTIONS true") }
}

// serverOf returns the address of the server's own database, and the name of the one
// at raw.
func serverOf(t *testing.T, raw string) (server, name string) {
	t.Helper()
	u := apptest.Must(url.Parse(raw))(t)
	name = strings.TrimPrefix(u.Path, "/")
	u.Path = "/postgres"
	return u.String(), name
}

// probe asks as a load balancer does.
func probe(t *testing.T, h *apptest.Bobbin, path string) (int, string) {
	t.Helper()
	req := apptest.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL+path, nil))(t)
	res := apptest.Must(h.HTTP.Do(req))(t)
	defer func() { _ = res.Body.Close() }()
	body := apptest.Must(io.ReadAll(res.Body))(t)
	return res.StatusCode, string(body)
}

// becomes waits until the readiness has the status, with the words in the answer.
func awaitReadiness(t *testing.T, h *apptest.Bobbin, want int, words string) {
	t.Helper()
	limit := time.Now().Add(apptest.Patience)
	for {
		status, body := probe(t, h, "/readyz")
		if status == want && strings.Contains(body, words) {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("/readyz answers %d %s, want %d and %s", status, body, want, words)
		}
		apptest.PauseBriefly(t)
	}
}
