package dbtest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"bobbin/app/db"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// Each runs test on SQLite and on PostgreSQL, as parallel subtests with a migrated, empty
// database each. Without PostgreSQL that half is skipped.
func Each(t *testing.T, test func(t *testing.T, d *db.DB)) {
	t.Helper()
	EachMigratedURL(t, func(t *testing.T, url string) { test(t, Open(t, url)) })
}

// EachURL is Each for tests that start processes or open databases themselves: it passes
// the URL of an empty database without tables.
func EachURL(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()
	run(t, "sqlite", SQLiteURL, test)
	run(t, "postgres", PostgresURL, test)
}

// EachMigratedURL is EachURL with all tables and no rows: programs need not migrate it,
// which would take longer than most of their tests.
func EachMigratedURL(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()
	run(t, "sqlite", MigratedSQLiteURL, test)
	run(t, "postgres", MigratedPostgresURL, test)
}

// EachMigratedURLNightly is EachMigratedURL with PostgreSQL only under BOBBIN_TEST_LONG (make
// nightly): for scenarios whose queries app/db/repositories tests on both.
func EachMigratedURLNightly(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()
	run(t, "sqlite", MigratedSQLiteURL, test)
	if os.Getenv(longVariable) != "" {
		run(t, "postgres", MigratedPostgresURL, test)
	}
}

// run runs test with the URL of a new database, beside others.
func run(t *testing.T, name string, create func(testing.TB) string, test func(t *testing.T, url string)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		test(t, create(t))
	})
}

// SQLite returns a migrated, empty SQLite database, closed after the test.
func SQLite(t testing.TB) *db.DB {
	t.Helper()
	return Open(t, MigratedSQLiteURL(t))
}

// MigratedSQLiteURL returns the URL of a SQLite file with all tables and no rows.
func MigratedSQLiteURL(t testing.TB) string {
	t.Helper()
	content := must.Get(migratedFile())(t)
	url := SQLiteURL(t)
	must.Do(t, os.WriteFile(strings.TrimPrefix(url, "sqlite://"), content, 0o600))
	return url
}

// migratedFile is the content of a migrated SQLite file, created once per process.
//
//nolint:gochecknoglobals // one template for all tests of a process is the point
var migratedFile = sync.OnceValues(func() (content []byte, err error) {
	folder, err := os.MkdirTemp("", "bobbin-dbtest-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	path := filepath.Join(folder, "bobbin.db")
	// A test's context would end before the other tests have used the file.
	if err := migrateURL(context.Background(), "sqlite://"+path); err != nil {
		return nil, err
	}
	if _, err := os.Stat(path + "-wal"); !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the file is incomplete: %s-wal: %w", path, err)
	}
	return os.ReadFile(path)
})

// SQLiteURL returns the URL of a SQLite file that does not exist yet.
func SQLiteURL(t testing.TB) string {
	t.Helper()
	return "sqlite://" + filepath.Join(t.TempDir(), "bobbin.db")
}

// Postgres returns a migrated, empty PostgreSQL database, dropped after the test.
// Without PostgreSQL the test is skipped, or fails if BOBBIN_TEST_REQUIRE says so.
func Postgres(t testing.TB) *db.DB {
	t.Helper()
	return Open(t, createDatabase(t, true))
}

// PostgresURL returns the URL of a PostgreSQL database without any tables, dropped
// after the test.
func PostgresURL(t testing.TB) string {
	t.Helper()
	return createDatabase(t, false)
}

// MigratedPostgresURL returns the URL of a PostgreSQL database with all tables and no
// rows, dropped after the test.
func MigratedPostgresURL(t testing.TB) string {
	t.Helper()
	return createDatabase(t, true)
}

// Open opens the database and closes it after the test. It does not migrate.
func Open(t testing.TB, url string) *db.DB {
	t.Helper()
	d := must.Get(db.Open(t.Context(), url, slog.New(slog.DiscardHandler), db.WithoutSync))(t) // tests need not survive a power failure
	t.Cleanup(func() {
		compare.Error(t, "close the test's database", nil, d.Close())
	})
	return d
}
