package db_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// A temporary outage has a code, and the error contains nothing internal.
func TestOutages(t *testing.T) {
	t.Parallel()
	for state, code := range map[string]string{
		"25006": "database_read_only", "53100": "disk_full", "08006": "database_unavailable", "53200": "database_unavailable",
		"53300": "database_unavailable", "57014": "database_unavailable", "57P01": "database_unavailable", "58030": "database_unavailable",
		"23505": "", "42P01": "",
	} {
		wantOutage(t, db.Translate(fmt.Errorf("write: %w", &pgconn.PgError{Code: state, Message: "of table hush"})), code)
	}
	compare.Contains(t, "want a database that is slow, not away", "did not answer in time", db.Translate(fmt.Errorf("write: %w", context.DeadlineExceeded)).Error())
	d := dbtest.SQLite(t)
	d.Pool().SetMaxOpenConns(1) // the limit is the connection's
	must.Do(t, d.Gorm.Exec("PRAGMA max_page_count = 1").Error)
	wantOutage(t, d.Gorm.Exec("CREATE TABLE more AS SELECT hex(zeroblob(1000000)) AS x").Error, "disk_full")
	must.Do(t, d.Gorm.Exec("PRAGMA query_only = 1").Error)
	wantOutage(t, d.Gorm.Exec("UPDATE write_checks SET checked_at = NULL").Error, "database_read_only")
}

// wantOutage checks the code of err; empty = no outage.
func wantOutage(t *testing.T, err error, code string) {
	t.Helper()
	var shown *core.Error
	if !errors.As(err, &shown) {
		shown = &core.Error{}
	}
	compare.Equal(t, "code, again in", []any{code, (code != ""), (code == "disk_full" || code == "database_read_only")}, []any{shown.Code, errors.Is(err, core.ErrNoDatabase), (shown.RetryAfter > 0)})
}

// CheckWrites writes at intervals, and repeats the last result in between.
func TestCheckWrites(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		before := d.Statements()
		for range 20 {
			must.Do(t, d.CheckWrites(t.Context()))
		}
		var at *time.Time
		n := d.Statements() - before
		if err := d.Gorm.Raw("SELECT checked_at FROM write_checks").Scan(&at).Error; err != nil || at == nil || n < 1 || n > 10 {
			t.Errorf("got %d writes, the last at %v, %v, want few", n, at, err)
		}
	})
}

// After a failover the connections to a read-only host are closed.
func TestReadOnlyConnectionsAreClosed(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	d.Pool().SetMaxOpenConns(1)
	must.Do(t, d.Gorm.Exec("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY").Error)
	wantOutage(t, d.CheckWrites(t.Context()), "database_read_only")
	compare.Error(t, "err: want a new connection, which takes writes", nil, d.Gorm.Exec("UPDATE write_checks SET checked_at = NULL").Error)
}
