package db

import (
	"context"
	"database/sql"
	"sync"

	"gorm.io/gorm"
)

// gate lets one writer of this process at a time into SQLite, in the order of
// arrival. SQLite itself makes writers wait by sleeping and trying again, which is
// unfair: under a steady load some would wait for longer than busy_timeout and
// fail. That remains only for other processes. Readers pass.
type gate struct {
	*sql.DB
	turn chan struct{} // holds one token while somebody writes
}

func newGate(pool *sql.DB) *gate { return &gate{DB: pool, turn: make(chan struct{}, 1)} }

// GetDBConn gives gorm the pool itself.
func (g *gate) GetDBConn() (*sql.DB, error) { return g.DB, nil }

func (g *gate) enter(ctx context.Context) error {
	select {
	case g.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *gate) leave() { <-g.turn }

// BeginTx begins a transaction; all of them write.
func (g *gate) BeginTx(ctx context.Context, opts *sql.TxOptions) (gorm.ConnPool, error) {
	if err := g.enter(ctx); err != nil {
		return nil, err
	}
	tx, err := g.DB.BeginTx(ctx, opts)
	if err != nil {
		g.leave()
		return nil, err
	}
	return &gatedTx{Tx: tx, leave: sync.OnceFunc(g.leave)}, nil
}

// ExecContext runs a statement that returns no rows, so one that writes.
func (g *gate) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if err := g.enter(ctx); err != nil {
		return nil, err
	}
	defer g.leave()
	return g.DB.ExecContext(ctx, query, args...)
}

// gatedTx leaves the gate when it ends, however it ends.
type gatedTx struct {
	*sql.Tx
	leave func()
}

// Commit ends the transaction.
func (t *gatedTx) Commit() error {
	defer t.leave()
	return t.Tx.Commit()
}

// Rollback ends the transaction.
func (t *gatedTx) Rollback() error {
	defer t.leave()
	return t.Tx.Rollback()
}
