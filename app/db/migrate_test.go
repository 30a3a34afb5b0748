package db_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/dbtest"
)

func TestMigrateUpDownUp(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		d := dbtest.Open(t, url)
		v := status(t, d)
		if v.Current != 0 || v.Target < 2 || !v.Pending() {
			t.Fatalf("empty database: got %+v, want version 0 of 2 or more", v)
		}
		if tables := readSchema(t, d); len(tables) != 0 {
			t.Errorf("asking for the status made %d tables", len(tables))
		}
		migrate(t, d)
		first := readSchema(t, d)
		migrate(t, d) // nothing to do
		if v := status(t, d); v.Current != v.Target || v.Pending() {
			t.Errorf("after Migrate: got %+v, want the newest", v)
		}
		for version := v.Target - 1; version >= 0; version-- {
			if err := d.MigrateTo(t.Context(), version); err != nil {
				t.Fatalf("down to %d: %v", version, err)
			}
			if got := status(t, d).Current; got > version { // less where a number is not used
				t.Fatalf("down to %d: got version %d", version, got)
			}
		}
		if tables := readSchema(t, d); len(tables) != 0 {
			t.Errorf("after all the way down: got %d tables, want none", len(tables))
		}
		if err := d.MigrateTo(t.Context(), 1); err != nil {
			t.Fatalf("up to 1: %v", err)
		}
		migrate(t, d)
		compareSchemas(t, "first time up", first, "second time up", readSchema(t, d))
	})
}

func migrate(t *testing.T, d *db.DB) {
	t.Helper()
	if err := d.Migrate(t.Context()); err != nil {
		t.Fatalf("migrate: %v", err)
	}
}

func status(t *testing.T, d *db.DB) db.Versions {
	t.Helper()
	v, err := d.MigrationStatus(t.Context())
	if err != nil {
		t.Fatalf("migration status: %v", err)
	}
	return v
}

// Several replicas start concurrently on a new database: one migrates, all continue.
func TestConcurrentMigrators(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		for _, from := range []string{"an empty database", "version 1"} {
			var wg sync.WaitGroup
			for i := range 6 {
				wg.Go(func() {
					d, err := db.Open(t.Context(), url, discard())
					if err != nil {
						t.Errorf("%s: replica %d: open: %v", from, i, err)
						return
					}
					defer func() { _ = d.Close() }()
					if err := d.Migrate(t.Context()); err != nil {
						t.Errorf("%s: replica %d: migrate: %v", from, i, err)
					}
				})
			}
			wg.Wait()
			d := dbtest.Open(t, url)
			if v := status(t, d); v.Pending() {
				t.Errorf("%s: got %+v, want the newest version", from, v)
			}
			if err := d.MigrateTo(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestMigrateRefusesANewerSchema(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		err := d.Gorm.WithContext(t.Context()).Exec("INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, true)").Error
		if err != nil {
			t.Fatal(err)
		}
		err = d.Migrate(t.Context())
		if !errors.Is(err, db.ErrSchemaNewer) || !strings.Contains(err.Error(), "version 99") {
			t.Errorf("got %v, want ErrSchemaNewer that names version 99", err)
		}
		if v := status(t, d); v.Current != 99 || v.Pending() {
			t.Errorf("status: got %+v, want version 99", v)
		}
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
		if err := d.Migrate(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want context.DeadlineExceeded", err)
		}
		if v := status(t, d); v.Current != 0 {
			t.Errorf("status while another process migrates: got %+v, want version 0", v)
		}
		unlock()
		migrate(t, d)
	})
}

// holdLock takes the migration lock as another process would.
func holdLock(t *testing.T, d *db.DB, url string) (unlock func()) {
	t.Helper()
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
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

// W2: a migration adds the summary columns to a database that already has conversations.
func TestSummariesAreAddedToOldSessions(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		d := dbtest.Open(t, url)
		if err := d.MigrateTo(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		session, first, second := core.NewID[core.SessionID](), core.NewID[core.MessageID](), core.NewID[core.MessageID]()
		g := d.Gorm.WithContext(t.Context())
		for _, err := range []error{
			g.Exec("INSERT INTO sessions (id, owner, title, message_count, last_seq, created_at, updated_at) VALUES (?, 'ann', 'old', 2, 2, ?, ?)",
				session, core.Now(), core.Now()).Error,
			g.Exec("INSERT INTO messages (id, session_id, owner, seq, role, content, status, created_at) VALUES (?, ?, 'ann', 1, 'user', 'hello', 'complete', ?)",
				first, session, core.Now()).Error,
			g.Exec("INSERT INTO messages (id, session_id, owner, seq, parent_id, role, content, status, created_at) VALUES (?, ?, 'ann', 2, ?, 'assistant', 'bye', 'complete', ?)",
				second, session, first, core.Now()).Error,
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		migrate(t, d)

		ann := core.Tenant{Owner: "ann"}
		sessions, messages := repositories.NewSessions(d.Gorm), repositories.NewMessages(d.Gorm)
		got, err := sessions.Get(t.Context(), ann, session)
		if err != nil {
			t.Fatal(err)
		}
		if got.Title != "old" || got.MessageCount != 2 || got.ConversationSummary != nil || got.SummaryThroughID != nil || got.SummaryVersion != 0 || got.PromptState != nil {
			t.Errorf("session: got %+v, want what it was, without a summary", got)
		}
		_, _, err = sessions.ApplyContext(t.Context(), ann, core.ContextChange{
			SessionID: session, Summary: &core.Summary{Content: "sum", FromID: first, ThroughID: first, FromSeq: 1, ThroughSeq: 1, MessagesCovered: 1}})
		if err != nil {
			t.Fatal(err)
		}
		rest, err := messages.GetMessagesAfter(t.Context(), ann, session, first)
		if err != nil || len(rest) != 1 || rest[0].ID != second || rest[0].Content != "bye" {
			t.Errorf("messages after the summary: got %+v, %v, want the second", rest, err)
		}

		// And back: the summary goes, the conversation stays.
		if err := d.MigrateTo(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		var n int
		if err := g.Raw("SELECT COUNT(*) FROM messages").Scan(&n).Error; err != nil || n != 2 {
			t.Errorf("messages after going down: got %d, %v, want 2", n, err)
		}
	})
}

// Summaries of before were all in use, and are still fallen back to; those that never
// were go with the columns that say so.
func TestSummariesOfBeforeWereInUse(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		d := dbtest.Open(t, url)
		if err := d.MigrateTo(t.Context(), 8); err != nil {
			t.Fatal(err)
		}
		session := core.NewID[core.SessionID]()
		g := d.Gorm.WithContext(t.Context())
		insert := func(statement string, args ...any) {
			if err := g.Exec(statement, args...).Error; err != nil {
				t.Fatal(err)
			}
		}
		const summary = "INSERT INTO session_summaries (id, session_id, owner, version, kind, state, content, created_at) VALUES (?, ?, 'ann', ?, 'rolling', ?, 'sum', ?)"
		insert("INSERT INTO sessions (id, owner, created_at, updated_at) VALUES (?, 'ann', ?, ?)", session, core.Now(), core.Now())
		insert(summary, core.NewID[core.SummaryID](), session, 1, "active", core.Now())
		migrate(t, d)
		summaries := repositories.NewSummaries(d.Gorm)
		old, err := summaries.Get(t.Context(), core.Tenant{Owner: "ann"}, session, 1)
		if err != nil || old.ActivatedAt == nil || !old.ActivatedAt.Equal(old.CreatedAt) {
			t.Errorf("got %+v, %v, want it in use since it was made", old, err)
		}
		insert(summary, core.NewID[core.SummaryID](), session, 2, "prepared", core.Now())
		if err := d.MigrateTo(t.Context(), 8); err != nil {
			t.Fatal(err)
		}
		var versions []int
		if err := g.Raw("SELECT version FROM session_summaries").Scan(&versions).Error; err != nil || len(versions) != 1 || versions[0] != 1 {
			t.Errorf("versions after going down: got %v, %v, want the one that was in use", versions, err)
		}
	})
}
