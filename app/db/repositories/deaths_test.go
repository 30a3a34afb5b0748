package repositories_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// Deaths count runs of processes that died. Runs that were given back, and runs that the
// process itself claimed and forgot, do not count.
func TestDeathsAreCounted(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
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
			{"could not begin it", func() error { return s.runs.HandBack(t.Context(), "worker-4", run.ID) }, "worker-5", 2},
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
			if err != nil || len(got) != 1 || got[0].Deaths != step.deaths {
				t.Fatalf("%s: got %+v, %v, want %d deaths", step.name, got, err, step.deaths)
			}
			run = got[0]
		}
		if run.GiveBacks != 1 {
			t.Errorf("got %d give-backs, want 1", run.GiveBacks)
		}
	})
}

// The death of a run that has to wait before it executes alone is not counted until then:
// if the process dies first, the run is found unchanged.
func TestDeathIsCountedLater(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		run := s.accept(t, ask(s.session(t).ID, "x")).Run
		s.exec(t, "UPDATE runs SET deaths = 2 WHERE id = ?", run.ID)
		for life := range 3 {
			over := core.TakeOver{Worker: fmt.Sprint("worker-2/", life), Lapsed: true, Deaths: 3, Later: true, Limit: 1}
			s.expire(t)
			got, err := s.runs.TakeOver(t.Context(), over)
			if err != nil || len(got) != 1 || got[0].Deaths != 2 {
				t.Fatalf("life %d: got %+v, %v, want the run with 2 deaths", life, got, err)
			}
			run = got[0]
		}
		wantError(t, "count for another attempt", s.runs.CountDeath(t.Context(), run.ID, run.Attempt-1, 3), core.ErrStale)
		for range 2 { // the answer to the first may be lost
			must.Do(t, s.runs.CountDeath(t.Context(), run.ID, run.Attempt, 3))
		}
		s.expire(t)
		if due, err := s.runs.Due(t.Context(), "worker-3", true); err != nil || due[4] != 1 {
			t.Errorf("got %v, %v, want a run with 4 deaths", due, err)
		}
	})
}

// A run that gets as far as waiting for a decision restarts with zero deaths.
func TestDeathsEndWithAWait(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		session := s.session(t).ID
		run := s.accept(t, ask(session, "x")).Run
		s.exec(t, "UPDATE runs SET deaths = 2 WHERE id = ?", run.ID)
		w := core.RunWrite{RunID: run.ID, SessionID: session, Attempt: 1, Wait: &core.RunWait{
			Approvals: []core.Approval{{ToolCallID: "c", Tool: "pay", Mode: core.ApprovalAlways}},
		}}
		if got := s.write(t, w).Run; got.Status != core.RunWaiting || got.Deaths != 0 {
			t.Errorf("got %s with %d deaths, want it to wait with none", got.Status, got.Deaths)
		}
	})
}
