package db_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"bobbin/app/db"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/pgproxy"
)

// A statement whose caller goes away costs no connection.
func TestCanceledStatementsKeepTheirConnection(t *testing.T) {
	t.Parallel()
	url := dbtest.PostgresURL(t)
	d, observer := dbtest.Open(t, url), dbtest.Open(t, url)
	d.Pool().SetMaxOpenConns(1)
	number := func(d *db.DB, query string, args ...any) (n int) {
		t.Helper()
		must.Do(t, d.Gorm.Raw(query, args...).Scan(&n).Error)
		return n
	}
	const backend = "SELECT pg_backend_pid()"
	first := number(d, backend)
	for range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = d.Gorm.WithContext(ctx).Exec("SELECT 1 FROM pg_sleep(0.04)").Error // none if it ended before it was canceled
		}()
		for !isClosed(done) && number(observer, "SELECT COUNT(*) FROM pg_stat_activity WHERE pid = ? AND state = 'active'", first) == 0 {
			runtime.Gosched() // until the statement is at work
		}
		cancel()
		<-done
		compare.Equal(t, "backend after a cancel", first, number(d, backend))
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Of several hosts the one that takes writes is taken, unless the URL says otherwise.
func TestHostThatTakesWritesIsTaken(t *testing.T) {
	t.Parallel()
	raw := dbtest.MigratedPostgresURL(t)
	standby := host(t, pgproxy.NewReadOnly(t, raw).URL)
	both := strings.Replace(raw, host(t, raw), standby+","+host(t, raw), 1)
	for also, readOnly := range map[string]bool{"": false, "&target_session_attrs=any": true} {
		d := must.Get(db.Open(t.Context(), both+also, slog.New(slog.DiscardHandler)))(t)
		compare.Equal(t, fmt.Sprintf("%q: read-only", also), readOnly, must.Get(d.Inspect(t.Context()))(t).ReadOnly)
		must.Do(t, d.Close())
	}
}

func host(t *testing.T, raw string) string {
	t.Helper()
	u := must.Get(url.Parse(raw))(t)
	return u.Host
}

// Only a connection to another machine that checks who answers is verified.
func TestIsUnverified(t *testing.T) {
	t.Setenv("PGSSLMODE", "")
	for url, want := range map[string]bool{
		"sqlite://bobbin.db":                                               false,
		"postgres://u:p@127.0.0.1:5432/x":                                  false,
		"postgres://u:p@localhost/x?sslmode=disable":                       false,
		"postgres://u:p@[::1]/x":                                           false,
		"postgres:///x?host=/var/run/postgresql":                           false,
		"postgres://u:p@db.example/x":                                      true,
		"postgresql://u:p@db.example/x?sslmode=disable":                    true,
		"postgres://u:p@db.example/x?sslmode=prefer":                       true,
		"postgres://u:p@db.example/x?sslmode=require":                      true,
		"postgres://u:p@db.example/x?sslmode=verify-ca":                    false,
		"postgres://u:p@db.example/x?sslmode=verify-full":                  false,
		"postgres://u:p@db.example/x?sslrootcert=system":                   false,
		"postgres://u:p@127.0.0.1,db.example/x":                            true,
		"postgres://u:p@127.0.0.1:5432,db.example:5/x?sslmode=verify-full": false,
	} {
		compare.Equal(t, url, want, db.IsUnverified(url))
	}
}
