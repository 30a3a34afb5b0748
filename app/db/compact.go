package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"bobbin/app/core"
)

// How long Compact waits for others: for readers who still see what was deleted.
const (
	compactWait = 30 * time.Second
	compactPoll = 100 * time.Millisecond
)

// Compact takes what was deleted from the tables out of the database's files, and
// returns what an operator should know about where bytes may still be.
//
// SQLite: the index of words is merged, the file is written anew (VACUUM) and the
// write-ahead log emptied. Writers wait meanwhile; the disk needs room for a second
// copy of the file.
//
// PostgreSQL: the tables and the planner's samples of them are written anew (VACUUM
// FULL), and a checkpoint removes the old files. Nobody can use a table while it is
// being written. Rows that an older transaction can still see would be kept, so it
// waits for those. The tables must be the program's own.
func (d *DB) Compact(ctx context.Context, tables []string) ([]string, error) {
	if d.Dialect() == "sqlite" {
		return d.compactSQLite(ctx)
	}
	return d.compactPostgres(ctx, tables)
}

func (d *DB) compactSQLite(ctx context.Context) ([]string, error) {
	if g, ok := d.Gorm.ConnPool.(*gate); ok {
		if err := g.enter(ctx); err != nil {
			return nil, err
		}
		defer g.leave()
	}
	conn, err := d.pool.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("compact database: %w", err)
	}
	defer func() { _ = conn.Close() }() // back into the pool
	indexes, err := texts(ctx, conn, "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE '%USING fts5%'")
	if err != nil {
		return nil, fmt.Errorf("compact database: %w", err)
	}
	for _, name := range indexes {
		if _, err := conn.ExecContext(ctx, fmt.Sprintf(`INSERT INTO "%[1]s" ("%[1]s") VALUES ('optimize')`, name)); err != nil {
			return nil, fmt.Errorf("merge the index %s: %w", name, err)
		}
	}
	if _, err := conn.ExecContext(ctx, "VACUUM"); err != nil {
		return nil, fmt.Errorf("write the database anew: %w", err)
	}
	if err := emptyLog(ctx, conn); err != nil {
		return nil, err
	}
	return []string{
		"backups and copies of the database file, and snapshots of its disk, hold what they held",
		"a solid state disk may keep overwritten blocks until it needs them",
	}, nil
}

// emptyLog brings everything from the write-ahead log into the file and makes the
// log empty. Readers of old states are waited for.
func emptyLog(ctx context.Context, conn *sql.Conn) error {
	tick := time.NewTicker(compactPoll)
	defer tick.Stop()
	limit := time.NewTimer(compactWait)
	defer limit.Stop()
	for {
		var busy, log, moved int
		err := conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &moved)
		if err != nil {
			return fmt.Errorf("empty the write-ahead log: %w", err)
		}
		if busy == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-limit.C:
			return core.Errorf(core.ErrUnavailable, "another program reads the database, so removed bytes are still in its write-ahead log; everything is removed from the tables; compact it again later")
		case <-tick.C:
		}
	}
}

func (d *DB) compactPostgres(ctx context.Context, tables []string) ([]string, error) {
	conn, err := d.pool.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("compact database: %w", err)
	}
	defer func() { _ = conn.Close() }() // back into the pool
	if err := awaitSnapshots(ctx, conn); err != nil {
		return nil, err
	}
	for _, table := range tables {
		anew, err := rewrite(ctx, conn, table)
		if err != nil {
			return nil, fmt.Errorf("write the table %s anew: %w", table, err)
		}
		if !anew {
			return nil, core.Errorf(core.ErrForbidden, "the database's user may not write the table %s anew, so removed bytes are still in the files; everything is removed from the tables. As the owner of the tables: VACUUM FULL", table)
		}
	}
	for _, table := range tables {
		if err := forgetSamples(ctx, conn, table); err != nil {
			return nil, fmt.Errorf("forget the samples of %s: %w", table, err)
		}
	}
	// The planner keeps samples of columns, as text. Those of before were replaced
	// just now: who began earlier still sees them.
	if err := awaitSnapshots(ctx, conn); err != nil {
		return nil, err
	}
	var notes []string
	if anew, err := rewrite(ctx, conn, "pg_statistic"); err != nil || !anew {
		notes = append(notes, "the planner's samples (pg_statistic) could not be written anew and may hold removed texts; as a superuser: VACUUM FULL pg_statistic")
	}
	if _, err := conn.ExecContext(ctx, "CHECKPOINT"); err != nil {
		notes = append(notes, "the old files of the tables go with PostgreSQL's next checkpoint, in some minutes; this user may not ask for one")
	}
	return append(notes,
		"PostgreSQL's write-ahead log (pg_wal), its archive, replicas, and backups hold what they held until they are recycled",
	), nil
}

// rewrite writes a table anew, and its samples. False: this user may not, of which
// PostgreSQL only warns.
func rewrite(ctx context.Context, conn *sql.Conn, table string) (bool, error) {
	var before, after int64
	file := "SELECT pg_relation_filenode('" + table + "')"
	if err := conn.QueryRowContext(ctx, file).Scan(&before); err != nil {
		return false, err
	}
	if _, err := conn.ExecContext(ctx, "VACUUM (FULL, ANALYZE) "+table); err != nil {
		return false, err
	}
	err := conn.QueryRowContext(ctx, file).Scan(&after)
	return before != after, err
}

// sampled are the columns of an empty table whose samples hold texts. ANALYZE makes
// none of an empty table, and leaves those that there are.
const sampled = `SELECT format('ALTER TABLE %%I ALTER COLUMN %%I TYPE %%s', s.tablename, s.attname, format_type(a.atttypid, a.atttypmod))
	FROM pg_stats s JOIN pg_attribute a ON a.attrelid = to_regclass('%[1]s') AND a.attname = s.attname
	WHERE s.schemaname = current_schema() AND s.tablename = '%[1]s' AND NOT EXISTS (SELECT 1 FROM %[1]s)
	AND a.atttypid IN ('text'::regtype, 'json'::regtype, 'jsonb'::regtype, 'bytea'::regtype, 'tsvector'::regtype)`

// forgetSamples drops the planner's samples of a table that is empty now. Giving a
// column the type that it has does that, and needs no superuser.
func forgetSamples(ctx context.Context, conn *sql.Conn, table string) error {
	statements, err := texts(ctx, conn, fmt.Sprintf(sampled, table))
	if err != nil {
		return err
	}
	for _, stmt := range statements {
		if _, err := conn.ExecContext(ctx, stmt); err != nil {
			return err
		}
	}
	return nil
}

// older counts what keeps deleted rows in a table that is written anew: states that
// somebody in this database still sees, and transactions in any database that began
// before $1, since whoever looks while they go on sees a state as old as they are.
const older = `SELECT (SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
		AND age(backend_xmin) > age(CAST(CAST($1 AS xid8) AS xid)))
	+ CASE WHEN pg_snapshot_xmin(pg_current_snapshot()) < CAST($1 AS xid8) THEN 1 ELSE 0 END`

// awaitSnapshots waits for transactions that began before now: they can still see
// what was deleted, so VACUUM would keep it.
func awaitSnapshots(ctx context.Context, conn *sql.Conn) error {
	var now string
	if err := conn.QueryRowContext(ctx, "SELECT CAST(pg_current_xact_id() AS text)").Scan(&now); err != nil {
		return fmt.Errorf("compact database: %w", err)
	}
	tick := time.NewTicker(compactPoll)
	defer tick.Stop()
	limit := time.NewTimer(compactWait)
	defer limit.Stop()
	for {
		var open int
		err := conn.QueryRowContext(ctx, older, now).Scan(&open)
		if err != nil {
			return fmt.Errorf("compact database: %w", err)
		}
		if open == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-limit.C:
			return core.Errorf(core.ErrUnavailable, "transactions that began earlier are still open (pg_stat_activity), so removed rows would stay in the files; everything is removed from the tables; compact it again later")
		case <-tick.C:
		}
	}
}

// texts returns the first column of a question.
func texts(ctx context.Context, conn *sql.Conn, query string) (list []string, err error) {
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		list = append(list, text)
	}
	return list, rows.Err()
}
