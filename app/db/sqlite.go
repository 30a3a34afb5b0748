package db

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"bobbin/app/core"
	"bobbin/migrations"
)

// lockSuffix ends the name of the migration lock beside the database file.
const lockSuffix = ".migrate.lock"

// sqliteMaxConns is enough for readers beside the one writer that SQLite allows.
const sqliteMaxConns = 8

// sqliteParams are the settings of every connection. Immediate transactions take the write
// lock when they begin: a transaction that reads first and writes later could not wait for
// the lock (SQLITE_BUSY_SNAPSHOT). Times are stored as text in UTC, so that they sort as
// text. A missing file is not created (makeFile does that, once): if the file was moved
// away, a connection to an empty database in its place would stay in the pool after it is
// back. With FULL a COMMIT waits for the disk, with NORMAL it does not.
const sqliteParams = "mode=rw&_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)&_pragma=foreign_keys(1)" +
	"&_txlock=immediate&_time_format=sqlite&_timezone=UTC&_pragma=synchronous"

func openSQLite(path string, withoutSync bool) (backend, error) {
	if path == "" || strings.HasPrefix(path, ":memory:") || strings.ContainsAny(path, "?\x00") {
		return backend{}, core.Errorf(core.ErrInvalid,
			"the database URL must be sqlite:// and the path of a file, without parameters; for example sqlite://bobbin-data/bobbin.db")
	}
	if err := makeFile(path); err != nil {
		return backend{}, fmt.Errorf("open database: %w", err)
	}
	connector, err := sqlite.NewConnector(sqliteDSN(path, withoutSync))
	if err != nil {
		return backend{}, fmt.Errorf("open database: %w", err)
	}
	pool := sql.OpenDB(cachingConnector{connector})
	pool.SetMaxOpenConns(sqliteMaxConns)
	pool.SetMaxIdleConns(sqliteMaxConns)
	queue := &writeQueue{DB: pool, turn: make(chan struct{}, 1), handover: make(chan struct{})}
	first := *queue // the same, for writers that come first
	first.reserve = true
	return backend{
		main:       &sqliteDialector{queue: queue},
		forReserve: &sqliteDialector{queue: &first},
		pool:       pool,
		reserve:    pool, // no long waits for a connection: writers wait in the writeQueue
		migrations: migrations.SQLite(),
		lockFile:   path + lockSuffix,
		writers:    1,
	}, nil
}

// sqliteDSN returns the driver's name for the file at path, which may contain any
// characters.
func sqliteDSN(path string, withoutSync bool) string {
	sync := "(FULL)"
	if withoutSync {
		sync = "(NORMAL)"
	}
	return "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath() + "?" + sqliteParams + sync
}

// How long, and how often, to try to connect.
const (
	connectTime  = 10 * time.Second
	connectPause = 20 * time.Millisecond
)

// firstConnection opens the first connection. For SQLite it retries while the file is
// locked: several processes that start concurrently on a new file each switch it to WAL,
// and on a machine under load one waited longer than busy_timeout.
func firstConnection(ctx context.Context, pool *sql.DB) error {
	var locked error
	_, err := poll(ctx, connectPause, connectTime, func() (bool, error) {
		err := pool.PingContext(ctx)
		if lite, ok := errors.AsType[*sqlite.Error](err); ok && lite.Code()&0xff == sqlite3.SQLITE_BUSY {
			locked = err
			return false, nil
		}
		locked = nil
		return true, err
	})
	return cmp.Or(locked, err)
}

// makeFile creates the file if it is missing, so that the files that SQLite puts beside it
// get the same permissions: conversations are private. A symbolic link is refused, as its
// creator decides where it leads.
func makeFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|core.NoFollow, 0o600)
	if err != nil {
		if info, statErr := os.Lstat(path); statErr == nil && info.Mode()&os.ModeSymlink != 0 {
			return core.Errorf(core.ErrInvalid, "%s is a symbolic link: name the file itself in database.url", path)
		}
		return err
	}
	return f.Close()
}
