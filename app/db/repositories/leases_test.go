package repositories_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
