package db_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"bobbin/app/db"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

func TestMigrate(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		d := dbtest.Open(t, url)
		v := status(t, d)
		must.True(t, v.Current == 0 && v.Target >= 1 && v.Pending(), "empty database: got %+v, want version 0 of 1 or more", v)
		compare.Equal(t, "tables after asking for the status", 0, len(readSchema(t, d)))
		migrate(t, d)
		first := readSchema(t, d)
		migrate(t, d) // nothing to do
		if v := status(t, d); v.Current != v.Target || v.Pending() {
			t.Errorf("after Migrate: got %+v, want the newest", v)
		}
		compareSchemas(t, "first time", first, "second time", readSchema(t, d))
	})
}

// A database from before the baseline, complete or half migrated, is refused and left alone.
func TestMigrateRefusesASchemaBeforeTheBaseline(t *testing.T) {
	t.Parallel()
	for _, version := range []int{1, 79} {
		dbtest.EachURL(t, func(t *testing.T, url string) {
			d := dbtest.Open(t, url)
			for _, stmt := range []string{
				"CREATE TABLE goose_db_version (id integer PRIMARY KEY, version_id bigint NOT NULL, is_applied boolean NOT NULL)",
				"INSERT INTO goose_db_version VALUES (1, 0, true)", fmt.Sprintf("INSERT INTO goose_db_version VALUES (2, %d, true)", version),
				"CREATE TABLE sessions (id text PRIMARY KEY)", "INSERT INTO sessions VALUES ('kept')",
			} {
				if err := d.Gorm.WithContext(t.Context()).Exec(stmt).Error; err != nil {
					t.Fatalf("%s: %v", stmt, err)
				}
			}
			before := readSchema(t, d)
			err := d.Migrate(t.Context())
			must.True(t, errors.Is(err, db.ErrSchemaOlder), "got %v, want ErrSchemaOlder", err)
			for _, words := range []string{fmt.Sprintf("at version %d,", version), "bobbin sessions export <id>", "bobbin import <file>"} {
				compare.Contains(t, "err.Error(): want in it", words, err.Error())
			}
			compareSchemas(t, "before", before, "after", readSchema(t, d))
			compare.Equal(t, "sessions: want the one of before", []string{"kept"}, queryTexts(t, d, "SELECT id FROM sessions"))
			compare.Equal(t, "version", int64(version), status(t, d).Current)
		})
	}
}

func migrate(t *testing.T, d *db.DB) {
	t.Helper()
	must.Do(t, d.Migrate(t.Context()))
}

func status(t *testing.T, d *db.DB) db.Versions {
	t.Helper()
	return must.Get(d.MigrationStatus(t.Context()))(t)
}

// Several replicas start concurrently on a new database: one migrates, all continue.
func TestConcurrentMigrators(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				d, err := db.Open(t.Context(), url, discard())
				if err != nil {
					t.Errorf("replica %d: open: %v", i, err)
					return
				}
				defer func() { _ = d.Close() }()
				compare.Error(t, fmt.Sprintf("replica %d: migrate", i), nil, d.Migrate(t.Context()))
			})
		}
		wg.Wait()
		v := status(t, dbtest.Open(t, url))
		compare.True(t, !v.Pending(), "got %+v, want the newest version", v)
	})
}

func TestMigrateRefusesANewerSchema(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		err := d.Gorm.WithContext(t.Context()).Exec("INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, true)").Error
		must.Do(t, err)
		err = d.Migrate(t.Context())
		compare.True(t, errors.Is(err, db.ErrSchemaNewer) && strings.Contains(err.Error(), "version 999"), "got %v, want ErrSchemaNewer that names version 999", err)
		v := status(t, d)
		compare.True(t, v.Current == 999 && !v.Pending(), "status: got %+v, want version 999", v)
	})
}

// A process stops waiting for the lock when its context ends.
func TestMigrateStopsWaiting(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		d := dbtest.Open(t, url)
		unlock := holdLock(t, d, url)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		compare.Error(t, "d.Migrate(ctx)", context.DeadlineExceeded, d.Migrate(ctx))
		compare.Equal(t, "status while another process migrates: want version 0", 0, status(t, d).Current)
		unlock()
		migrate(t, d)
	})
}

// holdLock takes the migration lock as another process would.
func holdLock(t *testing.T, d *db.DB, url string) (unlock func()) {
	t.Helper()
	check := func(err error) {
		must.Do(t, err)
	}
	if path, ok := strings.CutPrefix(url, "sqlite://"); ok {
		lock := flock.New(path + ".migrate.lock")
		check(lock.Lock())
		return func() { check(lock.Unlock()) }
	}
	other := dbtest.Open(t, url).Gorm.WithContext(t.Context()).Begin()
	check(other.Error)
	check(other.Exec("SELECT pg_advisory_xact_lock(x'626f6262696e'::bigint)").Error)
	return func() { check(other.Rollback().Error) }
}
