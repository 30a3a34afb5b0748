package db

import (
	"context"
	"database/sql"
	"sync"
	"time"

	"bobbin/app/core"
)

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
