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
	"sync"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/callbacks"
	"gorm.io/gorm/clause"
	sqlite "modernc.org/sqlite"
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

// sqliteDialector makes gorm use modernc.org/sqlite, which is pure Go; gorm's own dialector
// needs cgo. The schema comes from migrations, so it does not alter tables.
type sqliteDialector struct {
	gorm.Dialector // nil: no Migrator and no default values

	queue *writeQueue
}

// Name is the dialect's name for gorm and the repositories.
func (*sqliteDialector) Name() string { return "sqlite" }

// Initialize registers the clauses that SQLite supports, including RETURNING.
func (d *sqliteDialector) Initialize(db *gorm.DB) error {
	callbacks.RegisterDefaultCallbacks(db, &callbacks.Config{
		CreateClauses: []string{"INSERT", "VALUES", "ON CONFLICT", "RETURNING"},
		UpdateClauses: []string{"UPDATE", "SET", "FROM", "WHERE", "RETURNING"},
		DeleteClauses: []string{"DELETE", "FROM", "WHERE", "RETURNING"},
	})
	db.ConnPool = d.queue
	// FOR UPDATE: SQLite has no row locks and needs none, see sqliteParams.
	db.ClauseBuilders["FOR"] = func(clause.Clause, clause.Builder) {}
	// A limit is written as +?: SQLite plans a statement anew for each value of a plain LIMIT ?,
	// so that keeping it prepared would be of no use.
	db.ClauseBuilders["LIMIT"] = func(c clause.Clause, b clause.Builder) {
		if limit, ok := c.Expression.(clause.Limit); ok && limit.Limit != nil && *limit.Limit >= 0 {
			_, _ = b.WriteString("LIMIT +")
			b.AddVar(b, *limit.Limit)
		}
	}
	return nil
}

// BindVarTo writes the placeholder of a parameter.
func (*sqliteDialector) BindVarTo(w clause.Writer, _ *gorm.Statement, _ any) { _ = w.WriteByte('?') }

// QuoteTo writes a quoted name, which is that of a table or of a column of the schema.
func (*sqliteDialector) QuoteTo(w clause.Writer, name string) {
	_ = w.WriteByte('"')
	_, _ = w.WriteString(name)
	_ = w.WriteByte('"')
}

// Explain returns the statement for the log, without its values.
func (*sqliteDialector) Explain(stmt string, _ ...any) string { return stmt }

// Translate translates an error to one of core or of gorm.
func (*sqliteDialector) Translate(err error) error {
	if outage := Translate(err); errors.Is(outage, core.ErrNoDatabase) {
		return outage
	}
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code() {
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY:
		return fmt.Errorf("%w: %w", gorm.ErrDuplicatedKey, err)
	case sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
		return fmt.Errorf("%w: %w", gorm.ErrForeignKeyViolated, err)
	case sqlite3.SQLITE_CONSTRAINT_CHECK:
		return fmt.Errorf("%w: %w", gorm.ErrCheckConstraintViolated, err)
	}
	return err
}

// writeQueue lets one writer of this process at a time into SQLite, in the order of
// arrival; those of DB.Reserve, and batches of messages, come first. SQLite itself makes writers wait by sleeping and
// retrying, which is unfair: under a steady load some would exceed busy_timeout and fail.
// That remains possible between processes. Readers do not wait.
type writeQueue struct {
	*sql.DB
	turn     chan struct{} // holds one token while a writer is active
	handover chan struct{} // passes the token to a writer of the reserve
	reserve  bool
}

// GetDBConn returns the pool to gorm.
func (g *writeQueue) GetDBConn() (*sql.DB, error) { return g.DB, nil }

func (g *writeQueue) acquireTurn(ctx context.Context) error {
	var handover chan struct{} // nil = no case
	if g.reserve {
		handover = g.handover
	}
	select {
	case g.turn <- struct{}{}:
		return nil
	case <-handover:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *writeQueue) releaseTurn() {
	select {
	case g.handover <- struct{}{}:
	default:
		<-g.turn
	}
}

// BeginTx begins a transaction; all transactions write.
func (g *writeQueue) BeginTx(ctx context.Context, opts *sql.TxOptions) (gorm.ConnPool, error) {
	if err := g.acquireTurn(ctx); err != nil {
		return nil, err
	}
	tx, err := g.DB.BeginTx(ctx, opts)
	if err != nil {
		g.releaseTurn()
		return nil, err
	}
	return &queuedTx{Tx: tx, release: sync.OnceFunc(g.releaseTurn)}, nil
}

// ExecContext runs a statement that returns no rows and therefore writes.
func (g *writeQueue) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if err := g.acquireTurn(ctx); err != nil {
		return nil, err
	}
	defer g.releaseTurn()
	return g.DB.ExecContext(ctx, query, args...)
}

// queuedTx releases its turn when it ends, whatever the reason.
type queuedTx struct {
	*sql.Tx
	release func()
}

// Commit ends the transaction.
func (t *queuedTx) Commit() error {
	defer t.release()
	return t.Tx.Commit()
}

// Rollback ends the transaction.
func (t *queuedTx) Rollback() error {
	defer t.release()
	return t.Tx.Rollback()
}

// writeCheckPause is how long the result of a write check is valid.
const writeCheckPause = 5 * time.Second

// writeCheck is the last write of CheckWrites.
type writeCheck struct {
	mu  sync.Mutex
	at  time.Time // when it began; zero = never; guarded by mu
	err error     // guarded by mu
}

// CheckWrites reports whether the database accepts writes. It writes a row, at most every
// five seconds, and otherwise repeats the last result. A database that is read-only or has
// no disk space is a core.ErrNoDatabase. If ctx ends during the write, which may have
// waited for others, the previous result counts.
//
// It closes the connections to a PostgreSQL that has become read-only: of several hosts,
// new connections find the one that accepts writes.
func (d *DB) CheckWrites(ctx context.Context) error {
	d.writes.mu.Lock()
	due, last := time.Since(d.writes.at) >= writeCheckPause, d.writes.err
	if due {
		d.writes.at = time.Now()
	}
	d.writes.mu.Unlock()
	if !due {
		return last
	}
	g := d.Gorm
	if stats := d.pool.Stats(); stats.InUse >= stats.MaxOpenConnections { // health checks must not wait for requests
		g = d.Reserve
	}
	err := g.WithContext(ctx).Exec("UPDATE write_checks SET checked_at = ? WHERE id = 1", core.Now()).Error
	if ctx.Err() != nil {
		return last
	}
	d.writes.mu.Lock()
	d.writes.err = err
	d.writes.mu.Unlock()
	if d.Dialect() == "postgres" && outageCode(err) == codeReadOnly {
		closeIdle(d.pool, postgresMaxConns)
		closeIdle(d.reserve, postgresReserve)
	}
	return err
}

// closeIdle closes the idle connections of the pool. The pool keeps up to conns idle ones
// from now on.
func closeIdle(pool *sql.DB, conns int) {
	pool.SetMaxIdleConns(0)
	pool.SetMaxIdleConns(conns)
}
