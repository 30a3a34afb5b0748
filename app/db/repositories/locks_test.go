package repositories_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// hog locks the session's row like another process, until release is called.
func (s *store) hog(t *testing.T, id core.SessionID) (release func()) {
	t.Helper()
	tx := s.Gorm.Begin()
	t.Cleanup(func() { tx.Rollback() })
	must.Do(t, tx.Exec("SELECT id FROM sessions WHERE id = ? FOR UPDATE", id).Error)
	return func() { tx.Rollback() }
}

// The clients of a locked session wait in this process, all but one: they do not occupy the
// connections that other sessions need.
func TestWritersOfALockedSessionLeaveThePool(t *testing.T) {
	t.Parallel()
	s := open(dbtest.Postgres(t))
	const clients = 60
	id := s.session(t).ID
	release := s.hog(t, id)
	var done, begun sync.WaitGroup
	begun.Add(clients)
	for range clients {
		done.Go(func() {
			begun.Done()
			_, err := s.runs.Accept(t.Context(), ann(), ask(id, "hello"))
			compare.True(t, err == nil || core.IsSessionBusy(err), "accept: %v, want the run or a busy session", err)
		})
	}
	begun.Wait()
	const waiting = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
	for s.count(t, waiting) == 0 && t.Context().Err() == nil { // until the first has come to the lock
	}
	for range 50 {
		if got := s.count(t, waiting); got > 1 {
			t.Fatalf("%d connections wait for the lock, want one", got)
		}
	}
	s.turns(t, s.session(t).ID, 1)
	release()
	done.Wait()
}

// A writer waits longer than one transaction may wait for another one's lock, and gets in when it
// is released. One that has waited as long as for a turn is refused, and may be tried again.
func TestWriterWaitsForALockedSession(t *testing.T) {
	t.Parallel()
	s := open(dbtest.Postgres(t))
	short, long := s.session(t).ID, s.session(t).ID
	release := s.hog(t, short)
	defer s.hog(t, long)()
	var writers sync.WaitGroup
	writers.Go(func() {
		_, err := s.runs.Accept(t.Context(), ann(), ask(long, "hello"))
		wantBusy(t, "a question to a session that stays locked", err)
	})
	writers.Go(func() { s.accept(t, ask(short, "hello")) })
	const waiting = "SELECT CAST(COALESCE(MAX(EXTRACT(EPOCH FROM xact_start) * 1000), 0) AS bigint) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
	first := 0
	for first == 0 && t.Context().Err() == nil {
		first = s.count(t, waiting)
	}
	for s.count(t, waiting) < first+1000 && t.Context().Err() == nil { // until a wait has ended and begun again
	}
	release()
	writers.Wait()
	s.accept(t, ask(s.session(t).ID, "hello"))
	// The limit is the transaction's own.
	var limit string
	if err := s.Gorm.Session(&gorm.Session{}).Raw("SHOW lock_timeout").Scan(&limit).Error; err != nil || limit != "0" {
		t.Errorf("got a limit of %q, %v for other statements, want none", limit, err)
	}
}

// Heartbeats have separate connections: requests that use the whole pool do not prevent the
// renewal of leases.
func TestHeartbeatHasAReserve(t *testing.T) {
	t.Parallel()
	s := open(dbtest.Postgres(t))
	run := s.accept(t, ask(s.session(t).ID, "hello")).Run
	for range s.Pool().Stats().MaxOpenConnections {
		tx := s.Gorm.Begin()
		t.Cleanup(func() { tx.Rollback() })
	}
	runs := s.runs.WithReserve(s.Reserve)
	lost := must.Get(runs.Renew(t.Context(), worker, []core.RunID{run.ID}))(t)
	compare.True(t, len(lost) == 0, "renew: lost %v", lost)
	compare.Error(t, "take over", nil, compare.ErrorOf(runs.TakeOver(t.Context(), core.TakeOver{Worker: "other", Limit: 10})))
	compare.Error(t, "waiting", nil, compare.ErrorOf(runs.Waiting(t.Context(), 10)))
	compare.Error(t, "ping", nil, s.Ping(t.Context()))
	compare.Error(t, "migration status", nil, compare.ErrorOf(s.MigrationStatus(t.Context())))
}

// While a table is locked, for instance to create an index, no process can renew a lease. A
// take-over that waited for the lock takes nothing, although the leases have lapsed.
func TestTakeOverAfterALockedTableTakesNothing(t *testing.T) {
	t.Parallel()
	s := open(dbtest.Postgres(t))
	s.accept(t, ask(s.session(t).ID, "hello"))
	s.expire(t)
	tx := s.Gorm.Begin()
	t.Cleanup(func() { tx.Rollback() })
	must.Do(t, tx.Exec("LOCK TABLE runs IN SHARE MODE").Error)
	got := make(chan int)
	go func() {
		runs, err := s.runs.TakeOver(t.Context(), core.TakeOver{Worker: "other", Lapsed: true, Deaths: 1, Limit: 10})
		compare.Error(t, "take over", nil, err)
		got <- len(runs)
	}()
	const waiting = `SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
		AND clock_timestamp() > query_start + interval '1 second'`
	for s.count(t, waiting) == 0 && t.Context().Err() == nil { // until it has waited for a second
	}
	tx.Rollback()
	compare.Equal(t, "runs taken over", 0, <-got)
	compare.Equal(t, "len(runs): want the one", 1, len(must.Get(s.takeOver(t.Context(), "other", true, 10))(t)))
}

// On SQLite writers take turns. A renewal of leases, a draft and a message each wait for the active one only, not
// for those that came before them: an answer waits for its own draft.
func TestRenewalComesBeforeWaitingWriters(t *testing.T) {
	t.Parallel()
	url := dbtest.MigratedSQLiteURL(t)
	synctest.Test(t, func(t *testing.T) {
		s := open(dbtest.Open(t, url))
		run, next, runs := s.accept(t, ask(s.session(t).ID, "hello")).Run, s.session(t).ID, s.runs.WithReserve(s.Reserve)
		var writers sync.WaitGroup
		for range 10 {
			writers.Go(func() {
				compare.Error(t, "slow writer", nil, s.Gorm.Transaction(func(*gorm.DB) error { time.Sleep(time.Second); return nil }))
			})
		}
		synctest.Wait()
		began := time.Now()
		lost, err := runs.Renew(t.Context(), worker, []core.RunID{run.ID})
		must.Do(t, runs.SavePartial(t.Context(), run.ID, run.Attempt, "draft"))
		s.accept(t, ask(next, "hello"))
		if took := time.Since(began); err != nil || len(lost) > 0 || took > 3*time.Second {
			t.Errorf("renewal, draft and message after %v: lost %v, %v, want the next turns", took, lost, err)
		}
		writers.Wait()
		full, cancel := context.WithCancel(t.Context())
		var drafts atomic.Int64
		for range 4 {
			writers.Go(func() {
				for full.Err() == nil {
					_ = runs.SavePartial(full, run.ID, run.Attempt, "draft")
					drafts.Add(1)
				}
			})
		}
		for range 50 {
			s.session(t) // gets a turn between two drafts
		}
		cancel()
		if writers.Wait(); drafts.Load() > 50_000 { // else half a million
			t.Errorf("got %d drafts before 50 sessions, want that they take turns", drafts.Load())
		}
	})
}

// A message is accepted in a second attempt after a deadlock: it refers to two files while
// another user deletes a message with the same two.
func TestAcceptAfterADeadlock(t *testing.T) {
	t.Parallel()
	url := dbtest.PostgresURL(t)
	s := open(dbtest.Open(t, url))
	must.Do(t, s.Migrate(t.Context()))
	first, second := s.upload(t, "", "a.txt", "a"), s.upload(t, "", "b.txt", "b")
	other := must.Get(pgx.Connect(t.Context(), url))(t)
	defer func() { _ = other.Close(context.WithoutCancel(t.Context())) }()
	exec := func(stmt string, args ...any) {
		t.Helper()
		if _, err := other.Exec(t.Context(), stmt, args...); err != nil {
			t.Fatalf("%s: %v", stmt, err)
		}
	}
	exec("SET deadlock_timeout = '30s'") // the other side is the one that finds out
	exec("BEGIN")
	exec("SELECT id FROM blobs WHERE id = $1 FOR UPDATE", second.ID)
	in := ask(s.session(t).ID, "look")
	in.Input.Parts = []core.Part{first.Part(), second.Part()}
	accepted := make(chan error, 1)
	go func() {
		_, err := s.runs.Accept(t.Context(), ann(), in)
		accepted <- err
	}()
	for waits := 0; waits == 0; { // until it has the first file and waits for the second
		must.Do(t, other.QueryRow(t.Context(), "SELECT COUNT(*) FROM pg_locks WHERE NOT granted AND pid IN (SELECT pid FROM pg_stat_activity WHERE datname = current_database())").Scan(&waits))
	}
	exec("SELECT id FROM blobs WHERE id = $1 FOR UPDATE", first.ID)
	exec("COMMIT")
	select {
	case err := <-accepted:
		compare.True(t, err == nil, "accept: %v", err)
	case <-time.After(time.Minute):
		t.Fatal("the message is still not accepted")
	}
}
