package repositories_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/dbtest"
)

// CONTEXT § 7: one summarization of a session at a time, whoever asks. The lease
// ends by itself, by the database's clock.
func TestLeaseSummary(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		var last core.Grant
		take := func(holder string) bool {
			t.Helper()
			got, err := s.sessions.LeaseSummary(t.Context(), ann(), id, holder, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			last = got
			return got.OK()
		}
		free := func(holder string) {
			t.Helper()
			if err := s.sessions.FreeSummary(t.Context(), id, holder); err != nil {
				t.Fatal(err)
			}
		}
		if s.work(t, id).Busy {
			t.Error("a new session is busy")
		}
		first := take("w1/a")
		if again := take("w1/a"); !first || !again || take("w1/b") || take("w2/a") || !s.work(t, id).Busy {
			t.Error("want the lease for the first, again and alone")
		}
		if take("w1/a"); last != core.GrantGiven {
			t.Errorf("the holder's own lease: got grant %d, want it given", last)
		}
		free("w2/a")
		if take("w2/a") {
			t.Error("a lease was ended by who does not hold it")
		}
		free("w1/a")
		if s.work(t, id).Busy || !take("w2/a") {
			t.Error("want the lease free for the next")
		}
		s.exec(t, "UPDATE sessions SET summary_lease_until = ? WHERE id = ?", core.Now().Add(-time.Second), id)
		if s.work(t, id).Busy || !take("w3/a") || last != core.GrantTakenOver {
			t.Errorf("want a lease to end by itself, and to be taken over: %d", last)
		}
		free("w2/a") // it comes back late
		if take("w1/a") {
			t.Error("who lost the lease ended that of the next holder")
		}
		for prefix, want := range map[string]bool{"w3": true, "w": true, "w33/": false, "w2/": false} {
			s.exec(t, "UPDATE sessions SET summary_lease_owner = 'w3/a', summary_lease_until = ? WHERE id = ?", core.Now().Add(time.Hour), id)
			if err := s.sessions.FreeSummaries(t.Context(), prefix); err != nil {
				t.Fatal(err)
			}
			if got := !s.work(t, id).Busy; got != want {
				t.Errorf("free those of %q: got %v, want %v", prefix, got, want)
			}
		}
		_, err := s.sessions.LeaseSummary(t.Context(), bob(), id, "w", time.Minute)
		wantNotFound(t, "lease of another owner's session", err)
		_, err = s.sessions.LeaseSummary(t.Context(), ann(), "x", "w", time.Minute)
		wantNotFound(t, "lease without a session", err)
		_, err = s.sessions.SummaryWork(t.Context(), carol(), id)
		wantNotFound(t, "work of another user's session", err)
		_, err = s.sessions.SummaryWork(t.Context(), ann(), "x")
		wantNotFound(t, "work without a session", err)
	})
}

// § 10 row 16: of any number at once exactly one has it.
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

// CONTEXT § 8, § 10 row 24: three failures in a row open the breaker, for a limited
// time; after it there is one try, and a success closes it.
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
		usage, err := s.modelCalls.SessionUsage(t.Context(), ann(), id)
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
		without := change(s.get(t, id), "by code", log[0], log[1])
		without.Summary.Model, without.Failure = "", "failure 5"
		if _, _, err := s.sessions.ApplyContext(t.Context(), ann(), without); err != nil {
			t.Fatal(err)
		}
		if b := s.work(t, id).Breaker; b.Until == nil || b.Failures != 5 {
			t.Errorf("got %+v, want it open again", b)
		}
		if _, _, err := s.sessions.ApplyContext(t.Context(), ann(), change(s.get(t, id), "by the model", log[2], log[3])); err != nil {
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
