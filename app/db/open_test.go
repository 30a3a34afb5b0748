package db_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestSQLiteFileIsPrivateWhateverItsName(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new folder", "a #1 100% größe &x=y.db")
	d := dbtest.Open(t, "sqlite://"+path)
	must.Do(t, d.Migrate(t.Context()))
	for _, name := range []string{path, path + "-wal", filepath.Dir(path)} {
		info, err := os.Stat(name)
		must.True(t, err == nil, "%s: %v", name, err)
		compare.Equal(t, name+": others may", 0, info.Mode().Perm()&0o077)
	}
}

// A file that was moved away is not created again, and is found when it is back.
func TestSQLiteFileMovedAwayAndBack(t *testing.T) {
	t.Parallel()
	url := dbtest.SQLiteURL(t)
	d := dbtest.Open(t, url)
	must.Do(t, d.Migrate(t.Context()))
	path := strings.TrimPrefix(url, "sqlite://")
	d.Pool().SetMaxIdleConns(0) // each question has a new connection
	must.Do(t, os.Rename(path, path+".away"))
	count := func() error {
		var n int
		return d.Gorm.WithContext(t.Context()).Raw("SELECT COUNT(*) FROM runs").Scan(&n).Error
	}
	if err := count(); err == nil || strings.Contains(err.Error(), "no such table") {
		t.Errorf("without its file: got %v, want that it cannot be opened", err)
	}
	compare.Error(t, "compare.ErrorOf(os.Stat(path)): want no new file in its place", os.ErrNotExist, compare.ErrorOf(os.Stat(path)))
	must.Do(t, os.Rename(path+".away", path))
	compare.Error(t, "with its file back", nil, count())
}

// S4: what both databases must do alike.
func TestTimesAndConstraintsAreAlike(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		g := d.Gorm.WithContext(t.Context())
		compare.Error(t, "ping", nil, d.Ping(t.Context()))
		now := d.Gorm.NowFunc()
		compare.True(t, now.Location() == time.UTC && now.Nanosecond()%1000 == 0, "now: got %v, want UTC in whole microseconds", now)
		insert := "INSERT INTO model_calibrations (model, factor, deviation, samples, updated_at) VALUES (?, 1, 0, 0, ?)"
		// The same moment in another zone: it must be found by a question in UTC.
		at := time.Date(2026, 3, 1, 23, 30, 0, 120_000, time.FixedZone("x", -5*3600))
		must.Do(t, g.Exec(insert, "a", at).Error)
		var n int
		for _, bound := range []time.Time{at.UTC().Add(-time.Microsecond), at.Add(-time.Hour)} {
			if err := g.Raw("SELECT COUNT(*) FROM model_calibrations WHERE updated_at > ?", bound).Scan(&n).Error; err != nil || n != 1 {
				t.Errorf("after %v: got %d rows, %v, want 1", bound, n, err)
			}
		}
		compare.Error(t, "same key", gorm.ErrDuplicatedKey, g.Exec(insert, "a", at).Error)
		orphan := "INSERT INTO tool_executions (run_id, call_id, session_id, owner, attempt, tool, started_at) VALUES (?, 'c', ?, 'ann', 1, 'x', ?)"
		id := core.NewID[string]()
		compare.Error(t, "orphan", gorm.ErrForeignKeyViolated, g.Exec(orphan, id, id, at).Error)
	})
}

func TestStatementsAreCountedAndLoggedWithoutValues(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		var out bytes.Buffer // written by this goroutine only
		d := must.Get(db.Open(t.Context(), url, slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))))(t)
		defer func() { _ = d.Close() }()
		var got string
		for range 3 {
			err := d.Gorm.WithContext(t.Context()).Raw("SELECT CAST(? AS text)", "s3cret").Scan(&got).Error
			must.True(t, err == nil && got == "s3cret", "select: got %q, %v", got, err)
		}
		compare.Equal(t, "statements", 3, d.Statements())
		compare.True(t, strings.Contains(out.String(), "SELECT CAST(") && !strings.Contains(out.String(), "s3cret"), "log: got %s, want the statement without its value", out.String())
	})
}

// A canceled caller leaves the line; the next one is served.
func TestSQLiteWritersWaitInLine(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	tx := d.Gorm.WithContext(t.Context()).Begin()
	if tx.Error != nil {
		t.Fatal(tx.Error)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	compare.Error(t, "begin, canceled", context.Canceled, d.Gorm.WithContext(ctx).Begin().Error)
	write := func(ctx context.Context) error {
		return d.Gorm.WithContext(ctx).Exec("DELETE FROM model_calibrations").Error
	}
	compare.Error(t, "write, canceled", context.Canceled, write(ctx))
	var n int
	compare.Error(t, "a reader beside the writer", nil, d.Gorm.WithContext(t.Context()).Raw("SELECT COUNT(*) FROM sessions").Scan(&n).Error)
	compare.Error(t, "rollback", nil, tx.Rollback().Error)
	compare.Error(t, "write afterwards", nil, write(t.Context()))
}

// The operator's error is one line, without the password and without repetitions.
func TestOpenTellsThatPostgresIsNotThere(t *testing.T) {
	t.Parallel()
	_, err := db.Open(t.Context(), "postgres://user:s3cret@127.0.0.1:1/x", discard())
	must.True(t, errors.Is(err, core.ErrUnavailable), "got %v, want an ErrUnavailable", err)
	text := err.Error()
	compare.True(t, !strings.Contains(text, "\n") && !strings.Contains(text, "s3cret") && strings.Contains(text, "127.0.0.1:1"), "got %q, want one line with the address", text)
}
