package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"bobbin/app/core"
	"bobbin/app/db/commit"
	"bobbin/app/db/models"
)

// insertBatch bounds the rows of one INSERT: the widest table has 28 columns; SQLite allows
// 32,766 parameters, PostgreSQL 65,535.
const insertBatch = 500

// DB is an open database. Safe for concurrent use; the caller closes it.
type DB struct {
	// Gorm is the handle that the repositories take.
	Gorm *gorm.DB
	// Reserve is a handle for heartbeats and sweeps, which must not wait for requests: on
	// PostgreSQL it has connections of its own, on SQLite its writers come first.
	Reserve *gorm.DB

	backend
	url        string
	logger     *slog.Logger
	statements *atomic.Int64
	writes     writeCheck
	commits    *commit.Commits
}

// backend holds the differences between the two databases.
type backend struct {
	main       gorm.Dialector // of Gorm
	forReserve gorm.Dialector // of Reserve
	pool       *sql.DB
	reserve    *sql.DB // the pool of Reserve; on SQLite the same pool
	migrations fs.FS
	lockFile   string // beside the database file; empty on PostgreSQL
	writers    int    // of shared commits
}

// Option changes how a database is opened.
type Option int

// WithoutSync lets SQLite acknowledge a write before it is on the disk: committed data
// survives a crash of the process, but may be lost when the machine loses power. It has no
// effect on PostgreSQL, which has synchronous_commit.
const WithoutSync Option = 1

// Open opens the database at url and checks that it responds: "sqlite://path" (a missing
// file and its folder are created, readable by their owner only) or
// "postgres://user@host/name". It leaves the schema as it is: call Migrate. An invalid URL
// is a core.ErrInvalid whose message says what is expected and never contains a password.
// Commits wait for the disk, unless an option says otherwise.
func Open(ctx context.Context, url string, log *slog.Logger, opts ...Option) (*DB, error) {
	var b backend
	var err error
	switch scheme, rest, found := strings.Cut(url, "://"); {
	case found && scheme == "sqlite":
		b, err = openSQLite(rest, slices.Contains(opts, WithoutSync))
	case found && (scheme == "postgres" || scheme == "postgresql"):
		b, err = openPostgres(url)
	default:
		if !found {
			scheme = "nothing"
		}
		err = core.Errorf(core.ErrInvalid,
			"the database URL must begin with sqlite:// or postgres:// but begins with %s; for example sqlite://bobbin-data/bobbin.db", scheme)
	}
	if err != nil {
		return nil, err
	}
	d := &DB{backend: b, url: url, logger: log, statements: new(atomic.Int64), commits: commit.New(b.writers)}
	if d.Gorm, err = d.newHandle(b.main); err == nil {
		d.Reserve, err = d.newHandle(b.forReserve)
		d.commits.First = d.Reserve
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open database: %w", err), d.Close())
	}
	if err := firstConnection(ctx, b.pool); err != nil {
		return nil, errors.Join(unreachableError(err), d.Close())
	}
	return d, nil
}

func (d *DB) newHandle(dialector gorm.Dialector) (*gorm.DB, error) {
	// PrepareStmt stays off: pgx caches prepared statements itself, and on SQLite gorm's
	// cache made a turn only 17 % faster and could deadlock (a transaction waited for a
	// statement that a waiting goroutine was preparing).
	models.RegisterSerializers()
	g, err := gorm.Open(dialector, &gorm.Config{
		NamingStrategy:         models.Names{},
		SkipDefaultTransaction: true,
		DisableAutomaticPing:   true,
		TranslateError:         true,
		CreateBatchSize:        insertBatch,
		// Columns by name, never *: a newer replica may add some while this one runs.
		QueryFields: true,
		NowFunc:     core.Now,
		Logger:      &queryLogger{logger.Discard, d.logger, d.statements},
	})
	if err != nil {
		return nil, err
	}
	return g, g.Use(d.commits)
}

// Ping reports whether the database answers and is still in its place: SQLite would accept
// writes to a removed file, which are lost with it.
func (d *DB) Ping(ctx context.Context) error {
	if d.lockFile != "" {
		if _, err := os.Stat(strings.TrimSuffix(d.lockFile, lockSuffix)); err != nil {
			return fmt.Errorf("database file: %w", err)
		}
	}
	return Translate(d.reserve.PingContext(ctx))
}

// Pool returns the connection pool, for statistics.
func (d *DB) Pool() *sql.DB { return d.pool }

// Close closes all connections. Transactions still open are rolled back.
func (d *DB) Close() error { return errors.Join(d.pool.Close(), d.reserve.Close()) }

// Dialect is "sqlite" or "postgres".
func (d *DB) Dialect() string { return d.Gorm.Name() }

// Statements is the number of SQL statements sent through Gorm since Open. BEGIN,
// COMMIT and migrations do not count. Meant for tests, benchmarks and metrics:
// the difference of two calls is what happened in between.
func (d *DB) Statements() int64 { return d.statements.Load() }

// slowQuery is the duration from which a statement is logged as slow.
const slowQuery = 200 * time.Millisecond

// queryLogger counts statements and logs slow ones, with placeholders and never with
// values: both dialectors' Explain leaves them out. It does not log errors, which are
// returned to callers with more context.
type queryLogger struct {
	logger.Interface // logs nothing

	log   *slog.Logger
	count *atomic.Int64
}

// LogMode is part of gorm's interface; slog decides on the level.
func (l *queryLogger) LogMode(logger.LogLevel) logger.Interface { return l }

// Trace is called once for every statement, after it ran.
func (l *queryLogger) Trace(ctx context.Context, begin time.Time, fc func() (string, int64), _ error) {
	l.count.Add(1)
	took := time.Since(begin)
	if took >= slowQuery && l.log.Enabled(ctx, slog.LevelWarn) {
		stmt, rows := fc()
		l.log.WarnContext(ctx, "slow query", "sql", stmt, "rows", rows, "dur", took)
	} else if l.log.Enabled(ctx, slog.LevelDebug) {
		stmt, rows := fc()
		l.log.DebugContext(ctx, "query", "sql", stmt, "rows", rows, "dur", took)
	}
}
