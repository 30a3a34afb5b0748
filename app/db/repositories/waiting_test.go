package repositories_test

import (
	"context"
	"testing"
	"time"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/tests/dbtest"
)

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
	if err := holder.Rollback().Error; err != nil {
		t.Fatal(err)
	}
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
	if err := holder.Exec("UPDATE runs SET status = 'succeeded' WHERE id = ?", run.ID).Error; err != nil {
		t.Fatal(err)
	}
	if err := holder.Commit().Error; err != nil {
		t.Fatal(err)
	}
	got := <-done
	if got.err != nil || got.run.Status != core.RunSucceeded || got.run.CancelRequested || len(got.events) != 0 {
		t.Errorf("cancel: got %+v, %v, want the run as it ended", got.run, got.err)
	}
}

// A lease that is renewed and taken over concurrently ends up with one worker, never with
// both.
func TestRenewComesTooLate(t *testing.T) {
	t.Parallel()
	s := open(dbtest.Postgres(t))
	run := s.accept(t, ask(s.session(t).ID, "go")).Run
	holder := s.hold(t, "UPDATE runs SET lease_owner = 'worker-2', attempt = attempt + 1 WHERE id = ?", run.ID)
	lost, err := s.runs.Renew(t.Context(), worker, []core.RunID{run.ID})
	if err != nil || len(lost) != 0 {
		t.Errorf("before the commit: got lost %v, %v, want nothing known yet", lost, err)
	}
	if err := holder.Commit().Error; err != nil {
		t.Fatal(err)
	}
	lost, err = s.runs.Renew(t.Context(), worker, []core.RunID{run.ID})
	if err != nil || len(lost) != 1 {
		t.Errorf("after it: got lost %v, %v, want the run lost", lost, err)
	}
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
	lost, err := s.runs.Renew(t.Context(), worker, ids)
	if err != nil || len(lost) != 0 {
		t.Errorf("got lost %v, %v, want none", lost, err)
	}
	if err := holder.Rollback().Error; err != nil {
		t.Fatal(err)
	}
	if n := s.count(t, "SELECT COUNT(*) FROM runs WHERE lease_until > clock_timestamp()"); n != 9 {
		t.Errorf("%d leases were renewed, want the 9 whose rows were free", n)
	}
}

// hold begins a transaction that keeps what the statement locks.
func (s *store) hold(t *testing.T, stmt string, args ...any) *gorm.DB {
	t.Helper()
	tx := s.Gorm.WithContext(t.Context()).Begin()
	if tx.Error != nil {
		t.Fatal(tx.Error)
	}
	if err := tx.Exec(stmt, args...).Error; err != nil {
		t.Fatal(err)
	}
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
