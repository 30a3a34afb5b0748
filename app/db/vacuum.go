package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"bobbin/app/core"
)

// How long Compact waits for readers that still see deleted rows.
const (
	compactWait = 30 * time.Second
	compactPoll = 100 * time.Millisecond
)

// Compact removes data that was deleted from the tables from the database's files, and
// returns notes for the operator on where bytes may remain.
//
// SQLite: merges the index of words, rewrites the file (VACUUM) and empties the write-ahead
// log. Writers wait meanwhile; the disk needs room for a second copy of the file.
//
// PostgreSQL: rewrites the tables and the planner's samples of them (VACUUM FULL), and a
// checkpoint removes the old files. A table is locked while it is rewritten. Rewriting
// keeps rows that an older transaction can still see, so Compact waits for those. The
// tables must be the program's own.
func (d *DB) Compact(ctx context.Context, tables []string) ([]string, error) {
	queue, isSQLite := d.Gorm.ConnPool.(*writeQueue)
	if isSQLite {
		if err := queue.acquireTurn(ctx); err != nil {
			return nil, err
		}
		defer queue.releaseTurn()
	}
	conn, err := d.pool.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("compact database: %w", err)
	}
	defer func() { _ = conn.Close() }() // returns it to the pool
	if isSQLite {
		return compactSQLite(ctx, conn)
	}
	return compactPostgres(ctx, conn, tables)
}

func compactSQLite(ctx context.Context, conn *sql.Conn) ([]string, error) {
	if _, err := conn.ExecContext(ctx, "INSERT INTO search_words (search_words) VALUES ('optimize')"); err != nil {
		return nil, fmt.Errorf("merge the index of words: %w", err)
	}
	if _, err := conn.ExecContext(ctx, "VACUUM"); err != nil {
		return nil, fmt.Errorf("rewrite the database: %w", err)
	}
	// Everything moves from the write-ahead log into the file; readers of old states delay that.
	empty, err := poll(ctx, compactPoll, compactWait, func() (bool, error) {
		var busy, log, moved int
		err := conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &moved)
		return busy == 0, err
	})
	if err == nil && !empty {
		return nil, core.Errorf(core.ErrUnavailable, "everything is removed from the tables, but another program reads the database, so removed bytes are still in its write-ahead log; compact it again later")
	}
	if err != nil {
		return nil, fmt.Errorf("empty the write-ahead log: %w", err)
	}
	return []string{
		"backups and copies of the database file, and snapshots of its disk, are unchanged",
		"a solid state disk may keep overwritten blocks until it reuses them",
	}, nil
}

// poll calls done until it reports true or fails, or the time is over: then it returns false.
func poll(ctx context.Context, every, limit time.Duration, done func() (bool, error)) (bool, error) {
	for until := time.Now().Add(limit); ; {
		if ok, err := done(); ok || err != nil || time.Now().After(until) {
			return ok, err
		}
		if core.Sleep(ctx, every) != nil {
			return false, context.Cause(ctx)
		}
	}
}

func compactPostgres(ctx context.Context, conn *sql.Conn, tables []string) ([]string, error) {
	if err := awaitSnapshots(ctx, conn); err != nil {
		return nil, err
	}
	for _, table := range tables {
		rewritten, err := rewriteTable(ctx, conn, table)
		if err != nil {
			return nil, fmt.Errorf("rewrite the table %s: %w", table, err)
		}
		if !rewritten {
			return nil, core.Errorf(core.ErrForbidden, "everything is removed from the tables, but the database's user may not rewrite the table %s, so removed bytes are still in the files. Run as the owner of the tables: VACUUM FULL", table)
		}
	}
	for _, table := range tables {
		// Setting a column to its own type drops the planner's samples of it, and needs no superuser.
		if _, err := conn.ExecContext(ctx, fmt.Sprintf(dropSamplesSQL, table)); err != nil {
			return nil, fmt.Errorf("drop the samples of %s: %w", table, err)
		}
	}
	// The planner keeps samples of columns as text. The old samples were just replaced, but
	// transactions that began earlier still see them.
	if err := awaitSnapshots(ctx, conn); err != nil {
		return nil, err
	}
	var notes []string
	if rewritten, err := rewriteTable(ctx, conn, "pg_statistic"); err != nil || !rewritten {
		notes = append(notes, "the planner's samples (pg_statistic) could not be rewritten and may contain removed texts; run as a superuser: VACUUM FULL pg_statistic")
	}
	if _, err := conn.ExecContext(ctx, "CHECKPOINT"); err != nil {
		notes = append(notes, "PostgreSQL's next checkpoint, in some minutes, removes the old files of the tables; this user may not request one")
	}
	return append(notes,
		"PostgreSQL's write-ahead log (pg_wal), its archive, replicas, and backups are unchanged until they are recycled",
	), nil
}

// rewriteTable rewrites a table and its samples. It returns false if the user lacks the
// right, for which PostgreSQL only issues a warning.
func rewriteTable(ctx context.Context, conn *sql.Conn, table string) (bool, error) {
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

// dropSamplesSQL sets the types of the columns of an empty table whose samples contain
// texts. ANALYZE takes no samples of an empty table, and keeps the old ones.
const dropSamplesSQL = `DO $$ DECLARE stmt text; BEGIN
	SELECT 'ALTER TABLE %[1]s ' || string_agg(format('ALTER COLUMN %%I TYPE %%s', s.attname, format_type(a.atttypid, a.atttypmod)), ', ') INTO stmt
	FROM pg_stats s JOIN pg_attribute a ON a.attrelid = to_regclass('%[1]s') AND a.attname = s.attname
	WHERE s.schemaname = current_schema() AND s.tablename = '%[1]s' AND NOT EXISTS (SELECT 1 FROM %[1]s)
	AND a.atttypid IN ('text'::regtype, 'json'::regtype, 'jsonb'::regtype, 'bytea'::regtype, 'tsvector'::regtype);
	IF stmt IS NOT NULL THEN EXECUTE stmt; END IF; END $$`

// olderSnapshotsSQL counts what keeps deleted rows in a rewritten table: snapshots in this
// database, and transactions in any database that began before $1, as later snapshots are
// as old as the oldest of them.
const olderSnapshotsSQL = `SELECT (SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
		AND age(backend_xmin) > age(CAST(CAST($1 AS xid8) AS xid)))
	+ CASE WHEN pg_snapshot_xmin(pg_current_snapshot()) < CAST($1 AS xid8) THEN 1 ELSE 0 END`

// awaitSnapshots waits for transactions that began before now: they can still see deleted
// rows, which VACUUM would keep.
func awaitSnapshots(ctx context.Context, conn *sql.Conn) error {
	var now string
	if err := conn.QueryRowContext(ctx, "SELECT CAST(pg_current_xact_id() AS text)").Scan(&now); err != nil {
		return fmt.Errorf("compact database: %w", err)
	}
	over, err := poll(ctx, compactPoll, compactWait, func() (bool, error) {
		var open int
		err := conn.QueryRowContext(ctx, olderSnapshotsSQL, now).Scan(&open)
		return open == 0, err
	})
	if err == nil && !over {
		return core.Errorf(core.ErrUnavailable, "everything is removed from the tables, but older transactions are still open (pg_stat_activity), so removed rows would stay in the files; compact it again later")
	}
	if err != nil {
		return fmt.Errorf("compact database: %w", err)
	}
	return nil
}

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

// BackupFile is a finished backup.
type BackupFile struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
	// Version of the schema.
	Version int64 `json:"version"`
}

// Backup writes everything that is committed when it begins into the file, which must not
// exist, and checks the copy. Writers continue meanwhile, in this process and in others;
// the disk needs room for the copy. The file is created whole or not at all, readable by
// its owner only. ErrInvalid on PostgreSQL, which has its own tools.
func (d *DB) Backup(ctx context.Context, path string) (BackupFile, error) {
	if d.Dialect() != "sqlite" {
		return BackupFile{}, core.Errorf(core.ErrInvalid, "backup copies SQLite files only; for PostgreSQL use: pg_dump --format=custom --file=<file> <database.url>")
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return BackupFile{}, core.Errorf(core.ErrConflict, "%s already exists, and a backup never overwrites a file; choose another name", path)
	}
	// VACUUM INTO writes only into empty files. This one is private to its owner.
	part, err := os.CreateTemp(filepath.Dir(path), ".bobbin-backup-*")
	if err != nil {
		return BackupFile{}, core.Errorf(core.ErrInvalid, "%v", err)
	}
	name := part.Name()
	copied, err := d.copyTo(ctx, part)
	if err == nil {
		err = os.Link(name, path) // unlike a rename it never replaces
	}
	copied.Path = path
	if err := errors.Join(err, os.Remove(name)); err != nil {
		return BackupFile{}, fmt.Errorf("backup: %w", err)
	}
	return copied, nil
}

// copyTo fills, syncs, closes and checks the file.
func (d *DB) copyTo(ctx context.Context, part *os.File) (BackupFile, error) {
	_, err := d.pool.ExecContext(ctx, "VACUUM INTO ?", part.Name())
	if err := errors.Join(err, part.Sync(), part.Close()); err != nil {
		return BackupFile{}, err
	}
	info, err := os.Stat(part.Name())
	if err != nil {
		return BackupFile{}, err
	}
	copied, err := Open(ctx, "sqlite://"+part.Name(), slog.New(slog.DiscardHandler))
	if err != nil {
		return BackupFile{}, err
	}
	health, err := copied.Inspect(ctx)
	if err == nil && health.Damage != "" {
		err = errors.New("the copy is damaged: " + health.Damage)
	}
	versions, statusErr := copied.MigrationStatus(ctx)
	err = errors.Join(err, statusErr, copied.Close())
	return BackupFile{Bytes: info.Size(), Version: versions.Current}, err
}
