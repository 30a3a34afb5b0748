package db_test

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// A reader of an old state keeps bytes in SQLite's log: Compact waits for it, and
// takes them out as soon as it ends.
func TestCompactWaitsForReaders(t *testing.T) {
	t.Parallel()
	address := dbtest.SQLiteURL(t)
	d, other := dbtest.Open(t, address), dbtest.Open(t, address)
	must.Do(t, d.Migrate(t.Context()))
	for _, stmt := range []string{"CREATE TABLE x (content TEXT)", "INSERT INTO x VALUES ('thesecret')"} {
		must.Do(t, d.Gorm.Exec(stmt).Error)
	}
	pool := must.Get(other.Gorm.DB())(t)
	conn, err := pool.Conn(t.Context())
	must.Do(t, err)
	defer conn.Close()
	var n int
	for _, stmt := range []string{"BEGIN", "SELECT COUNT(*) FROM x"} {
		if stmt == "BEGIN" {
			_, err = conn.ExecContext(t.Context(), stmt)
		} else {
			err = conn.QueryRowContext(t.Context(), stmt).Scan(&n)
		}
		must.Do(t, err)
	}
	must.Do(t, d.Gorm.Exec("DELETE FROM x").Error)
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := d.Compact(short, nil); err == nil || !errors.Is(err, context.DeadlineExceeded) && !strings.Contains(err.Error(), "interrupt") {
		t.Errorf("while somebody reads: got %v, want it to wait", err)
	}
	must.Get(conn.ExecContext(t.Context(), "ROLLBACK"))(t)
	must.Get(d.Compact(t.Context(), nil))(t)
	files, err := filepath.Glob(strings.TrimPrefix(address, "sqlite://") + "*")
	must.True(t, err == nil && len(files) != 0, "files: %v, %v", files, err)
	for _, file := range files {
		data := must.Get(os.ReadFile(file))(t)
		compare.True(t, !bytes.Contains(data, []byte("thesecret")), "%s, or what was deleted is in it", file)
	}
}

// On PostgreSQL the program's user need not be a superuser; Compact reports what it may not
// do.
func TestCompactWithoutSuperuser(t *testing.T) {
	t.Parallel()
	address := dbtest.PostgresURL(t)
	admin := dbtest.Open(t, address)
	role := "bobbin_" + strings.ReplaceAll(core.NewID[string](), "-", "")
	for _, stmt := range []string{"CREATE ROLE " + role + " LOGIN", "GRANT CREATE, USAGE ON SCHEMA public TO " + role} {
		must.Do(t, admin.Gorm.Exec(stmt).Error)
	}
	t.Cleanup(func() {
		if err := admin.Gorm.Exec("DROP OWNED BY " + role).Error; err == nil {
			_ = admin.Gorm.Exec("DROP ROLE " + role) // the cluster goes anyway
		}
	})
	u := must.Get(url.Parse(address))(t)
	u.User = url.User(role)
	d := dbtest.Open(t, u.String())
	for _, stmt := range []string{
		"CREATE TABLE x (content text)", "INSERT INTO x SELECT 'thesecret' FROM generate_series(1, 100)", "ANALYZE x", "DELETE FROM x",
	} {
		must.Do(t, d.Gorm.Exec(stmt).Error)
	}
	notes := must.Get(d.Compact(t.Context(), []string{"x"}))(t)
	if !slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "checkpoint") }) ||
		!slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "pg_statistic") }) {
		t.Errorf("notes: %q, want what this user may not do", notes)
	}
	var samples int
	if err := d.Gorm.Raw("SELECT COUNT(*) FROM pg_stats WHERE tablename = 'x'").Scan(&samples).Error; err != nil || samples != 0 {
		t.Errorf("samples of the empty table: %d, %v, want none", samples, err)
	}
}
