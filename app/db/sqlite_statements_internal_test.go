package db

import (
	"bobbin/tests/compare"
	"bobbin/tests/must"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"modernc.org/sqlite"
)

// newCachingPool returns a pool of one connection that keeps its statements.
func newCachingPool(t *testing.T) *sql.DB {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bobbin.db")
	must.Do(t, makeFile(path))
	connector := must.Get(sqlite.NewConnector(sqliteDSN(path, true)))(t)
	pool := sql.OpenDB(cachingConnector{connector})
	pool.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = pool.Close() })
	return pool
}

// readNames returns the first column of the rows.
func readNames(ctx context.Context, t *testing.T, tx *sql.Tx, each func()) (names []string) {
	t.Helper()
	rows := must.Get(tx.QueryContext(ctx, "SELECT name FROM things WHERE id > ? ORDER BY id", 0))(t)
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name string
		must.Do(t, rows.Scan(&name))
		names = append(names, name)
		each()
	}
	must.Do(t, rows.Err())
	return names
}

// A kept statement gives what a new one gives: while its rows are being read, after an error, after
// its reader has left, and after the table has changed.
func TestKeptStatements(t *testing.T) {
	t.Parallel()
	pool := newCachingPool(t)
	exec := func(query string, args ...any) error {
		_, err := pool.ExecContext(t.Context(), query, args...)
		return err
	}
	const insert = "INSERT INTO things (name) VALUES (?)"
	must.Do(t, errors.Join(exec("CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT UNIQUE)"), exec(insert, "a"), exec(insert, "b")))
	compare.True(t, exec(insert, "a") != nil && exec(insert, "c") == nil, "a statement that has failed is of no use afterwards")

	tx := must.Get(pool.BeginTx(t.Context(), nil))(t)
	inner := 0
	outer := readNames(t.Context(), t, tx, func() { inner += len(readNames(t.Context(), t, tx, func() {})) })
	compare.Equal(t, "rows read within rows", "[a b c] 9", fmt.Sprint(outer, inner))
	must.Do(t, tx.Commit())

	const forever = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n WHERE i < 0"
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		err := pool.QueryRowContext(ctx, forever).Scan(new(int))
		cancel()
		compare.True(t, err != nil, "got no error of a statement that was broken off")
	}

	const read = "SELECT * FROM things WHERE id = 1"
	for columns := 2; columns < 4; columns++ {
		rows := must.Get(pool.QueryContext(t.Context(), read))(t)
		names, err := rows.Columns()
		if err := errors.Join(err, rows.Close(), rows.Err()); err != nil || len(names) != columns {
			t.Errorf("got the columns %v, %v, want %d", names, err, columns)
		}
		must.Do(t, exec(fmt.Sprintf("ALTER TABLE things ADD COLUMN c%d TEXT", columns)))
	}
}

// A connection keeps a bounded number of statements, and none that is very long.
func TestKeptStatementsAreBounded(t *testing.T) {
	t.Parallel()
	pool := newCachingPool(t)
	conn := must.Get(pool.Conn(t.Context()))(t)
	defer func() { _ = conn.Close() }()
	kept := func() (n int) {
		_ = conn.Raw(func(c any) error { n = len(c.(*cachingConn).statements); return nil })
		return n
	}
	read := func(query string) {
		must.Do(t, conn.QueryRowContext(t.Context(), query).Scan(new(int)))
	}
	read(fmt.Sprintf("SELECT 1 %*s", maxStatementBytes, ""))
	compare.Equal(t, "long statements are kept", 0, kept())
	for i := range 5 * maxStatements {
		read(fmt.Sprintf("SELECT %d", i))
		if n := kept(); n == 0 || n > maxStatements {
			t.Fatalf("after %d statements %d are kept, want 1 to %d", i+1, n, maxStatements)
		}
	}
}
