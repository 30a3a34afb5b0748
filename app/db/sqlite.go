package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite" // registers the driver "sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"bobbin/app/core"
	"bobbin/migrations"
)

// lockSuffix ends the name of the lock of migrations, beside the database file.
const lockSuffix = ".migrate.lock"

// sqliteMaxConns is enough for readers beside the one writer that SQLite allows.
const sqliteMaxConns = 8

// sqliteParams are the settings of every connection. Immediate transactions take
// the write lock when they begin: a transaction that reads first and writes later
// could not be made to wait otherwise (SQLITE_BUSY_SNAPSHOT). Times are stored as
// text in UTC, so that they sort as text. A file that is missing is not made anew
// (makeFile does that, once): a connection to an empty database in the place of one
// that was moved away would stay in the pool when that is back.
const sqliteParams = "mode=rw&_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)&_pragma=foreign_keys(1)" +
	"&_pragma=synchronous(NORMAL)&_txlock=immediate&_time_format=sqlite&_timezone=UTC"

func openSQLite(path string) (backend, error) {
	if path == "" || strings.HasPrefix(path, ":memory:") || strings.ContainsAny(path, "?\x00") {
		return backend{}, core.Errorf(core.ErrInvalid,
			"the database URL must be sqlite:// and the path of a file, without parameters; for example sqlite://bobbin-data/bobbin.db")
	}
	if err := makeFile(path); err != nil {
		return backend{}, fmt.Errorf("open database: %w", err)
	}
	pool, err := sql.Open("sqlite", sqliteDSN(path))
	if err != nil {
		return backend{}, fmt.Errorf("open database: %w", err)
	}
	pool.SetMaxOpenConns(sqliteMaxConns)
	pool.SetMaxIdleConns(sqliteMaxConns)
	return backend{
		dialector:  &sqliteDialector{pool: pool},
		pool:       pool,
		migrations: migrations.SQLite(),
		lockFile:   path + lockSuffix,
	}, nil
}

// sqliteDSN returns the driver's name for the file at path, whatever is in it.
func sqliteDSN(path string) string {
	return "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath() + "?" + sqliteParams
}

// How long to try to connect, and how often.
const (
	connectTime  = 10 * time.Second
	connectPause = 20 * time.Millisecond
)

// connect makes the first connection. SQLite's is tried again while the file is
// locked: several processes that start at once on a new file each switch it to
// WAL, and on a machine under load one was seen to wait longer than busy_timeout.
func connect(ctx context.Context, pool *sql.DB) error {
	limit, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	for {
		err := pool.PingContext(ctx)
		if lite, ok := errors.AsType[*sqlite.Error](err); !ok || lite.Code()&0xff != sqlite3.SQLITE_BUSY {
			return err
		}
		select {
		case <-time.After(connectPause):
		case <-limit.Done():
			return err
		}
	}
}

// makeFile creates the file if it is missing, so that what SQLite puts beside it
// gets the same permissions: conversations are nobody else's business.
func makeFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}
