package repositories_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/tests/dbtest"
)

func TestTakeOver(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		var runs []core.Run
		for i := range 4 {
			in := ask(s.session(t).ID, fmt.Sprint(i))
			in.Worker = fmt.Sprint("worker-", i%2)
			runs = append(runs, s.accept(t, in).Run)
		}
		take := func(over core.TakeOver) []core.Run {
			t.Helper()
			got, err := s.runs.TakeOver(t.Context(), over)
			if err != nil {
				t.Fatalf("take over: %v", err)
			}
			return got
		}
		if got, err := s.takeOver(t.Context(), "worker-2", true, 10); err != nil || len(got) != 0 {
			t.Errorf("live leases: got %d runs, %v, want none", len(got), err)
		}
		// A restart finds its own runs without waiting, and not those of others.
		if diff := cmp.Diff([]core.RunID{runs[1].ID, runs[3].ID}, runIDs(take(core.TakeOver{Worker: "worker-1/2", Deaths: 1, Limit: 10}))); diff != "" {
			t.Errorf("own runs after a restart (-want +got):\n%s", diff)
		}
		s.expire(t)
		if got, err := s.takeOver(t.Context(), "worker-2", false, 10); err != nil || len(got) != 0 {
			t.Errorf("lapsed leases, not asked for: got %d runs, %v, want none", len(got), err)
		}
		second := core.TakeOver{Worker: "worker-2", Lapsed: true, Deaths: 1, Limit: 1}
		for _, want := range []core.RunID{runs[0].ID, runs[2].ID} {
			if diff := cmp.Diff([]core.RunID{want}, runIDs(take(second))); diff != "" {
				t.Errorf("the oldest that died once (-want +got):\n%s", diff)
			}
		}
		second.Deaths, second.Limit = 2, 10
		rest := take(second)
		if diff := cmp.Diff([]core.RunID{runs[1].ID, runs[3].ID}, runIDs(rest)); diff != "" {
			t.Errorf("the rest (-want +got):\n%s", diff)
		}
		if r := rest[1]; r.Attempt != 3 || r.LeaseOwner != "worker-2" || r.Deaths != 2 || !lasts(t, s, r) {
			t.Errorf("run: got %+v, want attempt 3 after two deaths with a new lease", r)
		}
		if got, err := s.takeOver(t.Context(), "worker-3", true, 10); err != nil || len(got) != 0 {
			t.Errorf("again: got %d runs, %v, want none", len(got), err)
		}
	})
}

func runIDs(runs []core.Run) []core.RunID {
	ids := make([]core.RunID, 0, len(runs))
	for _, r := range runs {
		ids = append(ids, r.ID)
	}
	return ids
}

// lasts reports whether a lease ends half a minute from now, by the database's clock.
func lasts(t *testing.T, s *store, r core.Run) bool {
	t.Helper()
	stored, err := s.runs.Get(t.Context(), ann(), r.ID)
	if err != nil || stored.LeaseUntil == nil {
		t.Fatalf("lease of run %s: %v, %v", r.ID, stored.LeaseUntil, err)
	}
	left := time.Until(*stored.LeaseUntil) // here both clocks are one
	return left > core.RunLease-10*time.Second && left <= core.RunLease+time.Second
}

func TestConcurrentTakeOversShareTheRuns(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		const n = 20
		for i := range n {
			s.accept(t, ask(s.session(t).ID, fmt.Sprint(i)))
		}
		s.expire(t)
		var mu sync.Mutex
		takers := map[core.RunID]int{}
		race(racers, func(i int) {
			got, err := s.takeOver(t.Context(), fmt.Sprint("worker-", i), true, 3)
			if err != nil {
				t.Errorf("take over %d: %v", i, err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, r := range got {
				takers[r.ID]++
			}
		})
		rest, err := s.takeOver(t.Context(), "worker-z", true, n)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rest {
			takers[r.ID]++
		}
		if len(takers) != n {
			t.Errorf("taken over: got %d runs, want %d", len(takers), n)
		}
		for id, times := range takers {
			if times != 1 {
				t.Errorf("run %s was taken over %d times, want once", id, times)
			}
		}
	})
}

func TestRenew(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		mine := s.accept(t, ask(s.session(t).ID, "mine")).Run
		ended := s.accept(t, ask(s.session(t).ID, "ended")).Run
		s.finish(t, ended, "done")
		in := ask(s.session(t).ID, "theirs")
		in.Worker = "worker-2"
		theirs := s.accept(t, in).Run
		s.expire(t)

		lost, err := s.runs.Renew(t.Context(), worker, []core.RunID{mine.ID, ended.ID, theirs.ID})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]core.RunID{ended.ID, theirs.ID}, lost); diff != "" {
			t.Errorf("lost (-want +got):\n%s", diff)
		}
		if !lasts(t, s, mine) {
			t.Error("the renewed lease does not last")
		}
		got, err := s.takeOver(t.Context(), "worker-3", true, 10)
		if err != nil || len(got) != 1 || got[0].ID != theirs.ID {
			t.Errorf("take over: got %v, %v, want only what was not renewed", runIDs(got), err)
		}
		before := s.Statements()
		lost, err = s.runs.Renew(t.Context(), worker, nil)
		if err != nil || lost != nil || s.Statements() != before {
			t.Errorf("nothing to renew: got %v, %v and %d statements, want nothing", lost, err, s.Statements()-before)
		}
	})
}

// More leases than a statement may have parameters.
func TestRenewMany(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		ids := []core.RunID{s.accept(t, ask(s.session(t).ID, "one")).Run.ID}
		for range 70_000 {
			ids = append(ids, core.NewID[core.RunID]())
		}
		ids = append(ids, s.accept(t, ask(s.session(t).ID, "two")).Run.ID)
		lost, err := s.runs.Renew(t.Context(), worker, ids)
		if err != nil || len(lost) != 70_000 {
			t.Errorf("got %d lost, %v, want all but the first and the last", len(lost), err)
		}
	})
}

// A run is either canceled in the queue or claimed, never both.
func TestCancelRacesWithClaim(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
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
			if canceled != nil {
				t.Fatal(canceled)
			}
			lost := errors.Is(claimed, core.ErrNotFound) && after.Status == core.RunCanceled
			won := claimed == nil && after.Status == core.RunRunning && after.CancelRequested
			if lost == won {
				t.Errorf("got claim %v and run %+v, want one of the two", claimed, after)
			}
		}
	})
}
