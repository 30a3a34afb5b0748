package db

import (
	"context"
	"database/sql"
	"sync"

	"gorm.io/gorm"
)

// writeQueue lets one writer of this process at a time into SQLite, in the order of
// arrival; those of DB.Reserve come first. SQLite itself makes writers wait by sleeping and
// retrying, which is unfair: under a steady load some would exceed busy_timeout and fail.
// That remains possible between processes. Readers do not wait.
type writeQueue struct {
	*sql.DB
	turn     chan struct{} // holds one token while a writer is active
	handover chan struct{} // passes the token to a writer of the reserve
	reserve  bool
}

func newWriteQueue(pool *sql.DB) *writeQueue {
	return &writeQueue{DB: pool, turn: make(chan struct{}, 1), handover: make(chan struct{})}
}

// forReserve returns the same queue for writers that come first.
func (g *writeQueue) forReserve() *writeQueue {
	first := *g
	first.reserve = true
	return &first
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
