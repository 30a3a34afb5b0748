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

// beginCheck returns the last result, and whether another write is due.
func (c *writeCheck) beginCheck() (due bool, last error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if due = time.Since(c.at) >= writeCheckPause; due {
		c.at = time.Now()
	}
	return due, c.err
}

func (c *writeCheck) endCheck(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

// CheckWrites reports whether the database accepts writes. It writes a row, at most every
// five seconds, and otherwise repeats the last result. A database that is read-only or has
// no disk space is a core.ErrNoDatabase. If ctx ends during the write, which may have
// waited for others, the previous result counts.
//
// It closes the connections to a PostgreSQL that has become read-only: of several hosts,
// new connections find the one that accepts writes.
func (d *DB) CheckWrites(ctx context.Context) error {
	due, last := d.writes.beginCheck()
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
	d.writes.endCheck(err)
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
