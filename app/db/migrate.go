package db

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gofrs/flock"
	"github.com/pressly/goose/v3"
)

// ErrSchemaNewer is the kind of error of a database whose schema is newer than
// this program.
var ErrSchemaNewer = errors.New("database schema is newer than the program")

// Versions are the versions of a schema.
type Versions struct {
	Current int64 // of the database; 0 = empty
	Target  int64 // the newest that this program knows
}

// Pending reports whether Migrate has something to do.
func (v Versions) Pending() bool { return v.Current < v.Target }

// lockPoll is how often a waiting migrator asks for the lock again.
const lockPoll = 50 * time.Millisecond

// Migrate brings the schema to the newest version. Any number of processes may
// call it at once: one works, the others wait for it. A schema that is newer than
// this program is left alone and is an ErrSchemaNewer.
func (d *DB) Migrate(ctx context.Context) error {
	return d.locked(ctx, func(p *goose.Provider) error {
		v, err := d.MigrationStatus(ctx)
		if err != nil {
			return err
		}
		if v.Current > v.Target {
			return fmt.Errorf("%w: the database is at version %d, this program knows versions up to %d; use a newer bobbin",
				ErrSchemaNewer, v.Current, v.Target)
		}
		if !v.Pending() {
			return nil
		}
		began := time.Now()
		results, err := p.Up(ctx)
		for _, r := range results {
			d.logger.DebugContext(ctx, "migration applied", "version", r.Source.Version, "dur", r.Duration)
			v.Current = r.Source.Version
		}
		if err != nil {
			return err
		}
		d.logger.InfoContext(ctx, "schema migrated", "version", v.Current, "migrations", len(results), "dur", time.Since(began))
		return nil
	})
}

// MigrateTo brings the schema up or down to the version; 0 is an empty database,
// with everything in it gone.
func (d *DB) MigrateTo(ctx context.Context, version int64) error {
	return d.locked(ctx, func(p *goose.Provider) error {
		v, err := d.MigrationStatus(ctx)
		if err != nil {
			return err
		}
		if version < v.Current {
			_, err = p.DownTo(ctx, version)
		} else if version > v.Current {
			_, err = p.UpTo(ctx, version)
		}
		return err
	})
}

// MigrationStatus returns the versions of the schema. It changes nothing and
// waits for nobody, so that a readiness check may call it often.
func (d *DB) MigrationStatus(ctx context.Context) (Versions, error) {
	p, err := d.provider()
	if err != nil {
		return Versions{}, err
	}
	var v Versions
	for _, s := range p.ListSources() {
		v.Target = max(v.Target, s.Version)
	}
	exists := "SELECT COUNT(*) FROM sqlite_master WHERE name = 'goose_db_version'"
	if d.lockFile == "" {
		exists = "SELECT COUNT(*) FROM pg_class WHERE oid = to_regclass('goose_db_version')"
	}
	var tables int
	if err := d.pool.QueryRowContext(ctx, exists).Scan(&tables); err != nil {
		return Versions{}, fmt.Errorf("read schema version: %w", err)
	}
	if tables == 0 {
		return v, nil
	}
	err = d.pool.QueryRowContext(ctx, "SELECT COALESCE(MAX(version_id), 0) FROM goose_db_version").Scan(&v.Current)
	if err != nil {
		return Versions{}, fmt.Errorf("read schema version: %w", err)
	}
	return v, nil
}

// locked calls fn while this process alone may change the schema.
func (d *DB) locked(ctx context.Context, fn func(*goose.Provider) error) error {
	p, err := d.provider()
	if err != nil {
		return err
	}
	unlock, err := d.lockSchema(ctx)
	if err != nil {
		return fmt.Errorf("wait for the migration lock: %w", err)
	}
	err = fn(p)
	if err != nil {
		err = fmt.Errorf("migrate database: %w", err)
	}
	return errors.Join(err, unlock())
}

// provider returns goose for the database. Its Close would close the pool: it is
// not called, and there is nothing else to release.
func (d *DB) provider() (*goose.Provider, error) {
	dialect := goose.DialectSQLite3
	if d.lockFile == "" {
		dialect = goose.DialectPostgres
	}
	p, err := goose.NewProvider(dialect, d.pool, d.migrations,
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	return p, nil
}

func (d *DB) lockSchema(ctx context.Context) (unlock func() error, err error) {
	if d.lockFile != "" {
		lock := flock.New(d.lockFile)
		if _, err := lock.TryLockContext(ctx, lockPoll); err != nil {
			return nil, err
		}
		return lock.Unlock, nil
	}
	return d.lockPostgres(ctx)
}
