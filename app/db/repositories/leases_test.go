package repositories_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"bobbin/app/core"
	"bobbin/app/db"
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
		rest := must.Get(s.takeOver(t.Context(), "worker-z", true, n))(t)
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
