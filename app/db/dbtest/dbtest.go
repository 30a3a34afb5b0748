package dbtest

import (
	"log/slog"
	"path/filepath"
	"testing"

	"bobbin/app/db"
)

// Each runs test on SQLite and on PostgreSQL, as parallel subtests with a migrated,
// empty database each. Where PostgreSQL is not installed that half is skipped.
func Each(t *testing.T, test func(t *testing.T, d *db.DB)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, SQLite(t))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, Postgres(t))
	})
}

// EachURL is Each for tests that start processes or open databases themselves: it
// gives the URL of a database that is empty, without any tables.
func EachURL(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, SQLiteURL(t))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, PostgresURL(t))
	})
}

// SQLite returns a migrated, empty SQLite database, closed after the test.
func SQLite(t testing.TB) *db.DB {
	t.Helper()
	d := Open(t, SQLiteURL(t))
	if err := d.Migrate(t.Context()); err != nil {
		t.Fatalf("migrate the test's SQLite: %v", err)
	}
	return d
}

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

// Open opens the database and closes it after the test. It does not migrate.
func Open(t testing.TB, url string) *db.DB {
	t.Helper()
	d, err := db.Open(t.Context(), url, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatalf("open the test's database: %v", err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close the test's database: %v", err)
		}
	})
	return d
}
