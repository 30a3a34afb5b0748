package db

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// migrationLock is the number of the advisory lock that guards the schema:
// "bobbin" in ASCII.
const migrationLock = 0x626f6262696e

// lockPostgres takes the advisory lock by asking again and again. Waiting inside
// PostgreSQL instead would hold a snapshot, and a migration that builds an index
// concurrently would wait for that snapshot for ever.
func (d *DB) lockPostgres(ctx context.Context) (unlock func() error, err error) {
	conn, err := d.pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if err := pollLock(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return func() error {
		// The lock must go even when ctx is over: the connection stays in the pool.
		var held bool
		row := conn.QueryRowContext(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1)", migrationLock)
		return errors.Join(row.Scan(&held), conn.Close())
	}, nil
}

func pollLock(ctx context.Context, conn *sql.Conn) error {
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for {
		var got bool
		row := conn.QueryRowContext(ctx, "SELECT pg_try_advisory_lock($1)", migrationLock)
		if err := row.Scan(&got); err != nil || got {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}
