package db

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"bobbin/app/core"
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
