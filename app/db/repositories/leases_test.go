package repositories_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

func runIDs(runs []core.Run) []core.RunID {
	ids := make([]core.RunID, 0, len(runs))
	for _, r := range runs {
		ids = append(ids, r.ID)
	}
	return ids
}

func TestConcurrentTakeOversShareTheRuns(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		const n = 20
		for i := range n {
			s.accept(t, ask(s.session(t).ID, fmt.Sprint(i)))
		}
		s.expire(t)
		var mu sync.Mutex
		takers := map[core.RunID]int{}
		race(racers, func(i int) {
			got, err := s.takeOver(t.Context(), fmt.Sprint("worker-", i), true, 3)
			compare.Error(t, fmt.Sprintf("take over %d", i), nil, err)
			mu.Lock()
			defer mu.Unlock()
			for _, r := range got {
				takers[r.ID]++
			}
		})
		rest := must.Get(s.takeOver(t.Context(), "worker-z", true, n))(t)
		for _, r := range rest {
			takers[r.ID]++
		}
		compare.Equal(t, "taken over: runs", n, len(takers))
		for id, times := range takers {
			compare.Equal(t, fmt.Sprintf("takeovers of run %s", id), 1, times)
		}
	})
}

// A run is either canceled in the queue or claimed, never both.
func TestCancelRacesWithClaim(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		for range 10 {
			in := ask(s.session(t).ID, "q")
			in.Worker = ""
			run := s.accept(t, in).Run
			var claimed, canceled error
			var after core.Run
			race(2, func(i int) {
				if i == 0 {
					_, claimed = s.runs.Claim(t.Context(), in.SessionID, worker)
				} else {
					after, _, canceled = s.runs.RequestCancel(t.Context(), ann(), run.ID)
				}
			})
			must.Do(t, canceled)
			lost := errors.Is(claimed, core.ErrNotFound) && after.Status == core.RunCanceled
			won := claimed == nil && after.Status == core.RunRunning && after.CancelRequested
			compare.True(t, lost != won, "got claim %v and run %+v, want one of the two", claimed, after)
		}
	})
}

// Deaths count runs of processes that died. Runs that were given back, and runs that the
// process itself claimed and forgot, do not count.
func TestDeathsAreCounted(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		run := s.accept(t, ask(s.session(t).ID, "x")).Run
		steps := []struct {
			name   string
			leave  func() error // how the worker leaves the run
			worker string       // that takes it over
			deaths int
		}{
			{"died", func() error { s.expire(t); return nil }, "worker-2", 1},
			{"died again", func() error { s.expire(t); return nil }, "worker-3", 2},
			{"stopped", func() error { return s.runs.Release(t.Context(), "worker-3") }, "worker-4", 2},
			{"could not begin it", func() error { return s.runs.Release(t.Context(), "worker-4", run.ID) }, "worker-5", 2},
			{"found no database", func() error { return s.runs.Yield(t.Context(), run.ID, 5) }, "worker-6", 2},
			{"forgot it", func() error { s.expire(t); return nil }, "worker-6", 2},
			{"was restarted", func() error { return nil }, "worker-6/2", 3},
		}
		for _, step := range steps {
			must.Do(t, step.leave())
			due, err := s.runs.Due(t.Context(), step.worker, true)
			if diff := cmp.Diff(map[int]int{step.deaths: 1}, due); err != nil || diff != "" {
				t.Fatalf("%s: due: %v (-want +got):\n%s", step.name, err, diff)
			}
			got, err := s.takeOver(t.Context(), step.worker, true, 1)
			must.True(t, err == nil && len(got) == 1 && got[0].Deaths == step.deaths, "%s: got %+v, %v, want %d deaths", step.name, got, err, step.deaths)
			run = got[0]
		}
		compare.Equal(t, "give-backs", 1, run.GiveBacks)
	})
}

// PostgreSQL only: on SQLite one transaction at a time writes.

// A run whose row somebody holds is no reason to wait: the sweep takes the others.
func TestTakeOverSkipsHeldRows(t *testing.T) {
	t.Parallel()
	s := open(dbtest.Postgres(t))
	held := s.accept(t, ask(s.session(t).ID, "held")).Run
	free := s.accept(t, ask(s.session(t).ID, "free")).Run
	s.expire(t)
	holder := s.hold(t, "SELECT 1 FROM runs WHERE id = ? FOR UPDATE", held.ID)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got, err := s.takeOver(ctx, "worker-2", true, 10)
	if err != nil || len(got) != 1 || got[0].ID != free.ID {
		t.Errorf("take over: got %v, %v, want only %s", runIDs(got), err, free.ID)
	}
	must.Do(t, holder.Rollback().Error)
}

// A run that ends while its cancel waits for the session is left as it ended.
func TestCancelComesTooLate(t *testing.T) {
	t.Parallel()
	s := open(dbtest.Postgres(t))
	run := s.accept(t, ask(s.session(t).ID, "go")).Run
	holder := s.hold(t, "SELECT 1 FROM sessions WHERE id = ? FOR UPDATE", run.SessionID)
	type result struct {
		run    core.Run
		events []core.Event
		err    error
	}
	done := make(chan result, 1)
	go func() {
		run, events, err := s.runs.RequestCancel(t.Context(), ann(), run.ID)
		done <- result{run, events, err}
	}()
	s.untilSomebodyWaits(t)
	must.Do(t, holder.Exec("UPDATE runs SET status = 'succeeded' WHERE id = ?", run.ID).Error)
	must.Do(t, holder.Commit().Error)
	got := <-done
	compare.True(t, got.err == nil && got.run.Status == core.RunSucceeded && !got.run.CancelRequested && len(got.events) == 0, "cancel: got %+v, %v, want the run as it ended", got.run, got.err)
}

// A lease that is renewed and taken over concurrently ends up with one worker, never with
// both.
func TestRenewComesTooLate(t *testing.T) {
	t.Parallel()
	s := open(dbtest.Postgres(t))
	run := s.accept(t, ask(s.session(t).ID, "go")).Run
	holder := s.hold(t, "UPDATE runs SET lease_owner = 'worker-2', attempt = attempt + 1 WHERE id = ?", run.ID)
	lost, err := s.runs.Renew(t.Context(), worker, []core.RunID{run.ID})
	compare.True(t, err == nil && len(lost) == 0, "before the commit: got lost %v, %v, want nothing known yet", lost, err)
	must.Do(t, holder.Commit().Error)
	lost = must.Get(s.runs.Renew(t.Context(), worker, []core.RunID{run.ID}))(t)
	compare.Equal(t, "after it: lost, want the run lost", 1, len(lost))
}

// A locked row does not prevent the renewal of the process's other leases, and its own run
// does not count as lost.
func TestRenewDoesNotWaitForHeldRows(t *testing.T) {
	t.Parallel()
	s := open(dbtest.Postgres(t))
	var ids []core.RunID
	for range 10 {
		ids = append(ids, s.accept(t, ask(s.session(t).ID, "x")).Run.ID)
	}
	s.expire(t)
	holder := s.hold(t, "SELECT id FROM runs WHERE id = ? FOR UPDATE", ids[9])
	compare.Equal(t, "lost", 0, len(must.Get(s.runs.Renew(t.Context(), worker, ids))(t)))
	must.Do(t, holder.Rollback().Error)
	compare.Equal(t, "leases were renewed: want the 9 whose rows were free", 9, s.count(t, "SELECT COUNT(*) FROM runs WHERE lease_until > clock_timestamp()"))
}

// hold begins a transaction that keeps what the statement locks.
func (s *store) hold(t *testing.T, stmt string, args ...any) *gorm.DB {
	t.Helper()
	tx := s.Gorm.WithContext(t.Context()).Begin()
	if tx.Error != nil {
		t.Fatal(tx.Error)
	}
	must.Do(t, tx.Exec(stmt, args...).Error)
	return tx
}

// untilSomebodyWaits returns when a statement in the database waits for a lock.
func (s *store) untilSomebodyWaits(t *testing.T) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	const query = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
	for s.count(t, query) == 0 {
		select {
		case <-t.Context().Done():
			t.Fatal("nobody waits")
		case <-tick.C:
		}
	}
}

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
