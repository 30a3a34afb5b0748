package db

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"bobbin/app/core"
)

// Copy is a backup that was made.
type Copy struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
	// Version is that of the schema.
	Version int64 `json:"version"`
}

// Backup writes everything that is committed when it begins into the file, which must
// not exist, and checks the copy. Writers go on meanwhile, in this process and in
// others; the disk needs room for the copy. The file is there whole or not at all, and
// for its owner only. ErrInvalid on PostgreSQL, which has tools for it.
func (d *DB) Backup(ctx context.Context, path string) (Copy, error) {
	if d.Dialect() != "sqlite" {
		return Copy{}, core.Errorf(core.ErrInvalid, "this copies a SQLite file; for PostgreSQL use its own: pg_dump --format=custom --file=<file> <database.url>")
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return Copy{}, core.Errorf(core.ErrConflict, "%s exists: a backup does not write over anything; name another file", path)
	}
	// Empty files are all that VACUUM INTO writes into; this one is its owner's only.
	part, err := os.CreateTemp(filepath.Dir(path), ".bobbin-backup-*")
	if err != nil {
		return Copy{}, core.Errorf(core.ErrInvalid, "%v", err)
	}
	name := part.Name()
	copied, err := d.copyTo(ctx, part)
	if err == nil {
		err = os.Link(name, path) // unlike a rename it never replaces
	}
	copied.Path = path
	if err := errors.Join(err, removeCopy(name)); err != nil {
		return Copy{}, fmt.Errorf("backup: %w", err)
	}
	return copied, nil
}

// copyTo fills the file, brings it to the disk, closes and checks it.
func (d *DB) copyTo(ctx context.Context, part *os.File) (Copy, error) {
	_, err := d.pool.ExecContext(ctx, "VACUUM INTO ?", part.Name())
	if err := errors.Join(err, part.Sync(), part.Close()); err != nil {
		return Copy{}, err
	}
	info, err := os.Stat(part.Name())
	if err != nil {
		return Copy{}, err
	}
	copied, err := Open(ctx, "sqlite://"+part.Name(), slog.New(slog.DiscardHandler))
	if err != nil {
		return Copy{}, err
	}
	health, err := copied.Inspect(ctx)
	if err == nil && health.Damage != "" {
		err = errors.New("the copy is damaged: " + health.Damage)
	}
	versions, statusErr := copied.MigrationStatus(ctx)
	err = errors.Join(err, statusErr, copied.Close())
	return Copy{Bytes: info.Size(), Version: versions.Current}, err
}

// removeCopy removes a copy by its name on the way, and what SQLite put beside it.
func removeCopy(name string) error {
	var errs []error
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(name + suffix); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
