package db

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/gofrs/flock"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"bobbin/app/core"
)

// Errors of a database whose schema this program cannot use.
var (
	ErrSchemaNewer = errors.New("database schema is newer than the program")
	ErrSchemaOlder = errors.New("database schema is too old to be migrated")
)

// Versions are the versions of a schema.
type Versions struct {
	Current  int64 // of the database; 0 = empty
	Baseline int64 // the oldest that this program can migrate
	Target   int64 // the newest that this program knows
}

// Check returns ErrSchemaNewer or ErrSchemaOlder, with advice, for a schema that this program
// cannot use or migrate.
func (v Versions) Check() error {
	switch {
	case v.Current > v.Target:
		return fmt.Errorf("%w: the database is at version %d, this program knows versions up to %d; use a newer bobbin",
			ErrSchemaNewer, v.Current, v.Target)
	case v.Current > 0 && v.Current < v.Baseline:
		return fmt.Errorf("%w: the database is at version %d, from before version 0.9.0; run bobbin sessions export <id> for each session with the bobbin that wrote it, "+
			"start this one on a new database, and run bobbin import <file>", ErrSchemaOlder, v.Current)
	default:
		return nil
	}
}

// Pending reports whether there are migrations to apply.
func (v Versions) Pending() bool { return v.Current < v.Target }

// lockPoll is how often a waiting process tries to get the migration lock.
const lockPoll = 50 * time.Millisecond

// Migrate brings the schema to the newest version. Any number of processes may call it
// concurrently: one migrates, the others wait. It leaves a schema alone that is newer than this
// program or from before its baseline, and returns ErrSchemaNewer or ErrSchemaOlder.
func (d *DB) Migrate(ctx context.Context) error {
	p, err := d.newProvider()
	if err != nil {
		return err
	}
	if d.lockFile != "" { // on PostgreSQL goose locks
		file := flock.New(d.lockFile, flock.SetFlag(os.O_CREATE|os.O_RDONLY|core.NoFollow))
		if _, err := file.TryLockContext(ctx, lockPoll); err != nil {
			return fmt.Errorf("wait for the migration lock: %w", err)
		}
		defer func() { _ = file.Unlock() }() // as the end of the process does
	}
	if err = d.migrateWith(ctx, p); err != nil {
		return Translate(fmt.Errorf("migrate database: %w", err))
	}
	return nil
}

func (d *DB) migrateWith(ctx context.Context, p *goose.Provider) error {
	v, err := d.MigrationStatus(ctx)
	if err == nil {
		err = v.Check()
	}
	if err != nil || !v.Pending() {
		return err
	}
	began := time.Now()
	results, err := p.Up(ctx)
	for _, r := range results {
		d.logger.DebugContext(ctx, "migration applied", "version", r.Source.Version, "dur", r.Duration)
		v.Current = r.Source.Version
	}
	if len(results) > 0 && err == nil {
		d.logger.InfoContext(ctx, "schema migrated", "version", v.Current, "migrations", len(results), "dur", time.Since(began))
	}
	return err
}

// MigrationStatus returns the versions of the schema. It changes nothing and never waits
// for a lock, so that readiness checks may call it often.
func (d *DB) MigrationStatus(ctx context.Context) (Versions, error) {
	p, err := d.newProvider()
	if err != nil {
		return Versions{}, err
	}
	var v Versions
	sources := p.ListSources() // by version
	v.Baseline, v.Target = sources[0].Version, sources[len(sources)-1].Version
	exists := "SELECT COUNT(*) FROM sqlite_master WHERE name = 'goose_db_version'"
	if d.lockFile == "" {
		exists = "SELECT COUNT(*) FROM pg_class WHERE oid = to_regclass('goose_db_version')"
	}
	var tables int
	if err := d.reserve.QueryRowContext(ctx, exists).Scan(&tables); err != nil {
		return Versions{}, fmt.Errorf("read schema version: %w", err)
	}
	if tables == 0 {
		return v, nil
	}
	err = d.reserve.QueryRowContext(ctx, "SELECT COALESCE(MAX(version_id), 0) FROM goose_db_version").Scan(&v.Current)
	if err != nil {
		return Versions{}, fmt.Errorf("read schema version: %w", err)
	}
	return v, nil
}

// newProvider returns goose for the database. The caller must not call its Close, which
// would close the pool; it holds nothing else.
func (d *DB) newProvider() (*goose.Provider, error) {
	dialect, options := goose.DialectSQLite3, []goose.ProviderOption{goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger())}
	if d.lockFile == "" {
		locker, err := lock.NewPostgresSessionLocker(lock.WithLockID(migrationLock), lock.WithLockTimeout(1, math.MaxInt32))
		if err != nil {
			return nil, err
		}
		dialect, options = goose.DialectPostgres, append(options, goose.WithSessionLocker(locker))
	}
	p, err := goose.NewProvider(dialect, d.pool, d.migrations, options...)
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	return p, nil
}

// migrationLock is the number of the advisory lock that guards the schema:
// "bobbin" in ASCII.
const migrationLock = 0x626f6262696e
