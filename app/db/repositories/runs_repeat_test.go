package repositories_test

import (
	"errors"
	"testing"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/tests/dbtest"
)

// Only the last write of the attempt that holds the run is known again.
func TestWriteAgainIsFenced(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		session := s.session(t).ID
		run := s.accept(t, ask(session, "2+2?")).Run
		step := core.RunWrite{ID: core.NewID[string](), RunID: run.ID, SessionID: session, Attempt: 1, Usage: core.Usage{InputTokens: 10}}
		s.write(t, step)
		if taken, err := s.takeOver(t.Context(), run.LeaseOwner+"/2", false, 10); err != nil || len(taken) != 1 {
			t.Fatalf("got %d runs taken over, %v", len(taken), err)
		}
		if _, err := s.runs.Write(t.Context(), step); !errors.Is(err, core.ErrStale) {
			t.Errorf("a repeated write of an attempt that is over: got %v, want stale", err)
		}
	})
}
