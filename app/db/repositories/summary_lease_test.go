package repositories_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/tests/dbtest"
)

// Of several concurrent holders exactly one gets the lease.
func TestConcurrentLeasesOneWins(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		var won atomic.Int32
		race(racers, func(i int) {
			got, err := s.sessions.LeaseSummary(t.Context(), ann(), id, fmt.Sprint(i), time.Minute)
			if err != nil {
				t.Errorf("racer %d: %v", i, err)
			}
			if got.OK() {
				won.Add(1)
			}
		})
		if won.Load() != 1 {
			t.Errorf("got %d holders, want 1", won.Load())
		}
	})
}

// Three failures in a row open the breaker for a limited time; then there is one attempt,
// and a success closes it.
func TestRow24BreakerOpensAndCloses(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		s.turns(t, id, 3)
		log := s.log(t, id)
		fail := func(reason string) {
			t.Helper()
			events, err := s.sessions.SummaryFailed(t.Context(), ann(), core.SummaryFailure{
				SessionID: id, Reason: reason, Events: []core.Event{core.NewEvent(id, "", core.EventContextFailed, core.ContextData{Reason: reason})},
				ModelCalls: []core.ModelCall{{Purpose: core.PurposeSummary, Model: "m", Usage: core.Usage{InputTokens: 10}}},
			})
			if err != nil || len(events) != 1 || events[0].Seq == 0 {
				t.Fatalf("got events %+v, %v, want one that is stored", events, err)
			}
		}
		before := s.get(t, id)
		for i := 1; i <= core.BreakerFailures; i++ {
			if b := s.work(t, id).Breaker; b.Until != nil || b.Failures != i-1 {
				t.Errorf("after %d failures: got %+v, want it closed", i-1, b)
			}
			fail(fmt.Sprint("failure ", i))
		}
		fail("") // nobody is to blame
		b := s.work(t, id).Breaker
		if b.Until == nil || b.Failures != core.BreakerFailures || b.Reason != "failure 3" || time.Until(*b.Until) > core.BreakerTime+time.Minute || time.Until(*b.Until) < core.BreakerTime-time.Minute {
			t.Errorf("got %+v, want it open for %s", b, core.BreakerTime)
		}
		if got := s.get(t, id); got.PromptRevision != before.PromptRevision || got.SummaryVersion != 0 || got.LastEventSeq != before.LastEventSeq+4 {
			t.Errorf("got session %+v, want only events", got)
		}
		usage, err := s.sessionUsage(t.Context(), ann(), id)
		if err != nil || usage.InputTokens != 40 {
			t.Errorf("got usage %+v, %v, want that of the four calls", usage, err)
		}

		past := func() {
			s.exec(t, "UPDATE sessions SET summary_breaker_until = ? WHERE id = ?", core.Now().Add(-time.Second), id)
			if b := s.work(t, id).Breaker; b.Until != nil {
				t.Errorf("got %+v after its time, want it closed", b)
			}
		}
		past()
		fail("failure 4") // the one try
		if b := s.work(t, id).Breaker; b.Until == nil || b.Failures != 4 || b.Reason != "failure 4" {
			t.Errorf("got %+v, want it open again", b)
		}
		past()
		// A summary without a model is no success of the model, one that failed a failure.
		without := pathChange(s.get(t, id), "by code", log[0], log[1])
		without.Summary.Model, without.Failure = "", "failure 5"
		if _, _, err := s.sessions.ApplyContext(t.Context(), ann(), without); err != nil {
			t.Fatal(err)
		}
		if b := s.work(t, id).Breaker; b.Until == nil || b.Failures != 5 {
			t.Errorf("got %+v, want it open again", b)
		}
		if _, _, err := s.sessions.ApplyContext(t.Context(), ann(), pathChange(s.get(t, id), "by the model", log[2], log[3])); err != nil {
			t.Fatal(err)
		}
		if b := s.work(t, id).Breaker; b.Until != nil || b.Failures != 0 || b.Reason != "" {
			t.Errorf("got %+v after a success, want nothing left", b)
		}
		_, err = s.sessions.SummaryFailed(t.Context(), bob(), core.SummaryFailure{SessionID: id})
		if !errors.Is(err, core.ErrNotFound) {
			t.Errorf("got %v for another owner's session, want not found", err)
		}
	})
}
