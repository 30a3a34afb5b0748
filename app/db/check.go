package db

import (
	"context"
	"fmt"
	"time"
)

// Health is what a check finds out about a database.
type Health struct {
	Version  string        // of the database program
	Skew     time.Duration // its clock minus ours
	Damage   string        // result of SQLite's quick check; empty = none
	ReadOnly bool          // PostgreSQL accepts no writes, like a standby
}

// Inspect checks the database without changing it. On a large SQLite file this takes a
// while; ctx bounds it.
func (d *DB) Inspect(ctx context.Context) (Health, error) {
	var h Health
	if d.Dialect() == "sqlite" {
		if err := d.pool.QueryRowContext(ctx, "SELECT 'SQLite ' || sqlite_version()").Scan(&h.Version); err != nil {
			return h, fmt.Errorf("inspect database: %w", err)
		}
		var found string
		if err := d.pool.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&found); err != nil {
			return h, fmt.Errorf("check database: %w", err)
		}
		if found != "ok" {
			h.Damage = found
		}
		return h, nil
	}
	var now time.Time
	before := time.Now()
	err := d.pool.QueryRowContext(ctx, "SELECT 'PostgreSQL ' || current_setting('server_version'), clock_timestamp(), current_setting('transaction_read_only') = 'on'").
		Scan(&h.Version, &now, &h.ReadOnly)
	if err != nil {
		return h, fmt.Errorf("inspect database: %w", err)
	}
	h.Skew = now.Sub(before.Add(time.Since(before) / 2))
	return h, nil
}
