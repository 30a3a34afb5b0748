package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"

	"gorm.io/gorm"

	"bobbin/app/core"
)

// insertBatch is the most rows of one INSERT: the widest table has 28 columns,
// and SQLite takes 32,766 parameters, PostgreSQL 65,535.
const insertBatch = 500

// DB is an open database. Safe for concurrent use; the caller closes it.
type DB struct {
	// Gorm is the handle that the repositories take.
	Gorm *gorm.DB

	url        string
	pool       *sql.DB
	migrations fs.FS
	lockFile   string // beside the database file; empty on PostgreSQL
	logger     *slog.Logger
	statements *atomic.Int64
}

// backend is what the two databases differ in.
type backend struct {
	dialector  gorm.Dialector
	pool       *sql.DB
	migrations fs.FS
	lockFile   string
}

// Open opens the database at url and makes sure that it answers:
// "sqlite://path" (the file and its folder are made when they are missing,
// readable by their owner only) or "postgres://user@host/name". The schema is
// left as it is: call Migrate. A URL that cannot be understood is a core.ErrInvalid
// whose message says what is expected and never shows a password.
func Open(ctx context.Context, url string, logger *slog.Logger) (*DB, error) {
	b, err := newBackend(url)
	if err != nil {
		return nil, err
	}
	count := new(atomic.Int64)
	// PrepareStmt stays off: pgx keeps prepared statements itself, and on SQLite
	// gorm's made a turn only 17 % faster and could deadlock (a transaction waited
	// for a statement that was being prepared by somebody who waited for it).
	g, err := gorm.Open(b.dialector, &gorm.Config{
		SkipDefaultTransaction: true,
		DisableAutomaticPing:   true,
		TranslateError:         true,
		CreateBatchSize:        insertBatch,
		// Columns by name, never *: a newer replica may add some while this one runs.
		QueryFields: true,
		NowFunc:     core.Now,
		Logger:      &queryLogger{logger: logger, count: count},
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open database: %w", err), b.pool.Close())
	}
	d := &DB{
		Gorm: g, url: url, pool: b.pool, migrations: b.migrations,
		lockFile: b.lockFile, logger: logger, statements: count,
	}
	if err := connect(ctx, b.pool); err != nil {
		return nil, errors.Join(unreachable(err), b.pool.Close())
	}
	return d, nil
}

func newBackend(url string) (backend, error) {
	scheme, rest, _ := strings.Cut(url, "://")
	switch scheme {
	case "sqlite":
		return openSQLite(rest)
	case "postgres", "postgresql":
		return openPostgres(url)
	}
	if !strings.Contains(url, "://") {
		scheme = "nothing"
	}
	return backend{}, core.Errorf(core.ErrInvalid,
		"the database URL must begin with sqlite:// or postgres://, and begins with %s; for example sqlite://bobbin-data/bobbin.db", scheme)
}

// Ping reports whether the database answers, and is where it was: a file that was
// removed would go on taking what is lost with it.
func (d *DB) Ping(ctx context.Context) error {
	if d.lockFile != "" {
		if _, err := os.Stat(strings.TrimSuffix(d.lockFile, lockSuffix)); err != nil {
			return fmt.Errorf("database file: %w", err)
		}
	}
	return d.pool.PingContext(ctx)
}

// Pool is the connection pool, to be looked at.
func (d *DB) Pool() *sql.DB { return d.pool }

// Close closes all connections. Transactions still open are rolled back.
func (d *DB) Close() error { return d.pool.Close() }

// Dialect is "sqlite" or "postgres".
func (d *DB) Dialect() string { return d.Gorm.Name() }

// Statements is the number of SQL statements sent through Gorm since Open. BEGIN,
// COMMIT and migrations do not count. Meant for tests, benchmarks and metrics:
// the difference of two calls is what happened in between.
func (d *DB) Statements() int64 { return d.statements.Load() }
