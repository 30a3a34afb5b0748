package db

import (
	"context"
	"database/sql"
	"sync"
	"time"

	"gorm.io/gorm"

	"bobbin/app/core"
)

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
