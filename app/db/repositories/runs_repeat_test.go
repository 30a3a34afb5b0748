package repositories_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/tests/dbtest"
)

// A write whose reply was lost is retried and executed once, with its events, its usage
// records and its end; the retry returns the same result.
func TestWriteAgain(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		session := s.session(t).ID
		run := s.accept(t, ask(session, "2+2?")).Run
		step := core.RunWrite{
			ID: core.NewID[string](), RunID: run.ID, SessionID: session, Attempt: 1,
			Events:     []core.Event{core.NewEvent(session, run.ID, core.EventContextSkipped, struct{}{})},
			ModelCalls: []core.ModelCall{{Purpose: core.PurposeSummary, Model: "m", Usage: core.Usage{InputTokens: 10}}},
			Usage:      core.Usage{InputTokens: 10},
		}
		first := s.write(t, step)
		if diff := cmp.Diff(first.Run, s.write(t, step).Run); diff != "" {
			t.Errorf("the run of a repeated step (-first +again):\n%s", diff)
		}
		said := answer("4")
		said.ID = core.NewID[core.MessageID]()
		end := core.RunWrite{
			ID: core.NewID[string](), RunID: run.ID, SessionID: session, Attempt: 1, Messages: []core.Message{said},
			Usage: core.Usage{OutputTokens: 1}, End: &core.RunEnd{Status: core.RunSucceeded, AnswerID: said.ID},
		}
		first = s.write(t, end)
		again := s.write(t, end)
		if diff := cmp.Diff(first, again, sameJSON(), asRead()); diff != "" {
			t.Errorf("a repeated end (-first +again):\n%s", diff)
		}
		if got := again.Run.Usage; got != (core.Usage{InputTokens: 10, OutputTokens: 1}) {
			t.Errorf("got usage %+v, want each write's once", got)
		}
		usage, err := s.sessionUsage(t.Context(), ann(), session)
		if want := (core.Usage{InputTokens: 10}); err != nil || usage != want {
			t.Errorf("got %+v in the books, %v, want %+v", usage, err, want)
		}
		want := []core.EventType{core.EventRunStarted, core.EventMessageCreated, core.EventContextSkipped, core.EventMessageCreated, core.EventRunSucceeded}
		if diff := cmp.Diff(want, types(s.allEvents(t, session))); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

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
