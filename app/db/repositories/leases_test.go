package repositories_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/dbtest"
	"bobbin/app/db/repositories"
)

func TestClaimStartsTheOldestQueuedRun(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		session := s.session(t).ID
		first := s.accept(t, ask(session, "one")).Run
		second := s.accept(t, ask(session, "two")).Run
		s.accept(t, ask(session, "three"))

		_, err := s.runs.Claim(t.Context(), session, "worker-2")
		wantNotFound(t, "claim while a run is active", err)
		written := s.finish(t, first, "answer one")
		got, err := s.runs.Claim(t.Context(), session, "worker-2")
		if err != nil {
			t.Fatal(err)
		}
		if r := got.Run; r.ID != second.ID || r.Status != core.RunRunning || r.Attempt != 1 || r.LeaseOwner != "worker-2" || r.StartedAt == nil {
			t.Errorf("run: got %+v, want the second, running with attempt 1", r)
		}
		if m := got.Message; m.Seq != 3 || m.ID != second.UserMessageID || m.ParentID != written.Messages[0].ID || m.Content != "two" {
			t.Errorf("message: got %+v, want the second question with seq 3 below the first answer", m)
		}
		if diff := cmp.Diff([]core.EventType{core.EventRunStarted, core.EventMessageCreated}, types(got.Events)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(s.sessionOf(t, session), got.Session); diff != "" {
			t.Errorf("session (-stored +returned):\n%s", diff)
		}
		stored, err := s.runs.Get(t.Context(), ann(), second.ID)
		if diff := cmp.Diff(stored, got.Run); err != nil || diff != "" {
			t.Errorf("run (-stored +returned): %v\n%s", err, diff)
		}
		_, err = s.runs.Claim(t.Context(), s.session(t).ID, worker)
		wantNotFound(t, "claim in an empty session", err)
		_, err = s.runs.Claim(t.Context(), core.NewID[core.SessionID](), worker)
		wantNotFound(t, "claim in an unknown session", err)
	})
}

// A run that waited for a decision is queued again: its question stays where it is.
func TestClaimGoesOnWithAStartedRun(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		session := s.session(t).ID
		accepted := s.accept(t, ask(session, "one"))
		s.exec(t, "UPDATE runs SET status = 'queued', lease_owner = '', lease_until = NULL WHERE id = ?", accepted.Run.ID)
		got, err := s.runs.Claim(t.Context(), session, worker)
		if err != nil {
			t.Fatal(err)
		}
		if got.Run.Attempt != 2 || !got.Run.StartedAt.Equal(*accepted.Run.StartedAt) {
			t.Errorf("run: got %+v, want attempt 2, started at the first start", got.Run)
		}
		if diff := cmp.Diff(accepted.Message, got.Message); diff != "" {
			t.Errorf("message (-first +again):\n%s", diff)
		}
		if diff := cmp.Diff([]core.EventType{core.EventRunStarted}, types(got.Events)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if got := len(s.log(t, session)); got != 1 {
			t.Errorf("log: got %d messages, want 1", got)
		}
	})
}

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
		take := func(worker string, all bool, limit int) []core.Run {
			t.Helper()
			got, err := s.runs.TakeOver(t.Context(), worker, all, limit)
			if err != nil {
				t.Fatalf("take over: %v", err)
			}
			return got
		}
		if got := take("worker-2", false, 10); len(got) != 0 {
			t.Errorf("live leases: got %d runs, want none", len(got))
		}
		// A restart finds its own runs at once, and not those of others.
		if diff := cmp.Diff([]core.RunID{runs[1].ID, runs[3].ID}, runIDs(take("worker-1", true, 10))); diff != "" {
			t.Errorf("own runs after a restart (-want +got):\n%s", diff)
		}
		s.expire(t)
		if diff := cmp.Diff([]core.RunID{runs[0].ID, runs[1].ID}, runIDs(take("worker-2", false, 2))); diff != "" {
			t.Errorf("the oldest two (-want +got):\n%s", diff)
		}
		rest := take("worker-2", false, 10)
		if diff := cmp.Diff([]core.RunID{runs[2].ID, runs[3].ID}, runIDs(rest)); diff != "" {
			t.Errorf("the rest (-want +got):\n%s", diff)
		}
		if r := rest[1]; r.Attempt != 3 || r.LeaseOwner != "worker-2" || !lasts(t, s, r) {
			t.Errorf("run: got %+v, want attempt 3 with a new lease", r)
		}
		if got := take("worker-3", true, 10); len(got) != 0 {
			t.Errorf("again: got %d runs, want none", len(got))
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
	return left > repositories.Lease-10*time.Second && left <= repositories.Lease+time.Second
}

// A process takes over at once what its replica's former life had, and nothing of a
// replica whose name only begins alike, or of a twin that has to work under another name.
func TestTakeOverOfAFormerLife(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		leased := map[string]core.RunID{}
		for _, owner := range []string{"bob/1", "bob", "bobby/1", "bob~2/2", "b/bob/1"} {
			in := ask(s.session(t).ID, "one")
			in.Worker = owner
			leased[owner] = s.accept(t, in).Run.ID
		}
		got, err := s.runs.TakeOver(t.Context(), "bob/3", true, 10)
		if err != nil {
			t.Fatal(err)
		}
		var ids []core.RunID
		for _, r := range got {
			if ids = append(ids, r.ID); r.LeaseOwner != "bob/3" || r.Attempt != 2 {
				t.Errorf("got %+v, want the next attempt, by the new process", r)
			}
		}
		if want := []core.RunID{leased["bob/1"], leased["bob"]}; !slices.Equal(ids, want) { // the second is of an older Bobbin
			t.Errorf("took over %v, want %v", ids, want)
		}
		lost, err := s.runs.Renew(t.Context(), "bob/1", []core.RunID{leased["bob/1"]})
		if err != nil || len(lost) != 1 {
			t.Errorf("the former life renews: %v, %v, want the lease lost", lost, err)
		}
	})
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
			got, err := s.runs.TakeOver(t.Context(), fmt.Sprint("worker-", i), false, 3)
			if err != nil {
				t.Errorf("take over %d: %v", i, err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, r := range got {
				takers[r.ID]++
			}
		})
		rest, err := s.runs.TakeOver(t.Context(), "worker-z", false, n)
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
		got, err := s.runs.TakeOver(t.Context(), "worker-3", false, 10)
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

func TestRelease(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		mine := s.accept(t, ask(s.session(t).ID, "mine")).Run
		in := ask(s.session(t).ID, "theirs")
		in.Worker = "worker-2"
		s.accept(t, in)
		if err := s.runs.Release(t.Context(), worker); err != nil {
			t.Fatal(err)
		}
		// Until somebody takes it over, what the worker still writes counts.
		s.write(t, core.RunWrite{RunID: mine.ID, SessionID: mine.SessionID, Attempt: 1, Messages: []core.Message{answer("late")}})
		got, err := s.runs.TakeOver(t.Context(), "worker-3", false, 10)
		if err != nil || !slices.Equal(runIDs(got), []core.RunID{mine.ID}) {
			t.Errorf("take over: got %v, %v, want the released run alone", runIDs(got), err)
		}
		_, err = s.runs.Write(t.Context(), core.RunWrite{RunID: mine.ID, SessionID: mine.SessionID, Attempt: 1})
		wantError(t, "write after the take-over", err, core.ErrStale)
	})
}

// An attempt that gives its run up lets anybody have it at once; another attempt's run
// it leaves alone.
func TestYield(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		run := s.accept(t, ask(s.session(t).ID, "one")).Run
		if err := s.runs.Yield(t.Context(), run.ID, 2); !errors.Is(err, core.ErrStale) {
			t.Errorf("yield of another attempt: got %v, want stale", err)
		}
		if got, err := s.runs.TakeOver(t.Context(), "worker-2", false, 10); err != nil || len(got) != 0 {
			t.Errorf("before: got %d runs, %v, want none", len(got), err)
		}
		if err := s.runs.Yield(t.Context(), run.ID, 1); err != nil {
			t.Fatal(err)
		}
		got, err := s.runs.TakeOver(t.Context(), "worker-2", false, 10)
		if err != nil || len(got) != 1 || got[0].ID != run.ID || got[0].Attempt != 2 {
			t.Errorf("after: got %+v, %v, want the run in attempt 2", got, err)
		}
	})
}

// One run is handed back, by who has it, and the others stay.
func TestHandBack(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		first, second := s.accept(t, ask(s.session(t).ID, "one")).Run, s.accept(t, ask(s.session(t).ID, "two")).Run
		for _, who := range []string{"worker-2", worker} {
			if err := s.runs.HandBack(t.Context(), who, first.ID); err != nil {
				t.Fatal(err)
			}
			got, err := s.runs.TakeOver(t.Context(), "worker-3", false, 10)
			if mine := who == worker; err != nil || mine != (len(got) == 1 && got[0].ID == first.ID) || len(got) > 1 {
				t.Errorf("handed back by %s: took over %+v, %v", who, got, err)
			}
		}
		if lost, err := s.runs.Renew(t.Context(), worker, []core.RunID{second.ID}); err != nil || len(lost) != 0 {
			t.Errorf("the other run: lost %v, %v", lost, err)
		}
	})
}

func TestWaiting(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		queued := func() core.SessionID {
			in := ask(s.session(t).ID, "q")
			in.Worker = ""
			s.accept(t, in)
			s.accept(t, in)
			return in.SessionID
		}
		first, second := queued(), queued()
		busy := s.session(t).ID
		s.accept(t, ask(busy, "a"))
		s.accept(t, ask(busy, "b"))
		s.session(t)

		got, err := s.runs.Waiting(t.Context(), 10)
		if diff := cmp.Diff([]core.SessionID{first, second}, got); err != nil || diff != "" {
			t.Errorf("waiting (-want +got): %v\n%s", err, diff)
		}
		got, err = s.runs.Waiting(t.Context(), 1)
		if err != nil || len(got) != 1 || got[0] != first {
			t.Errorf("waiting, at most one: got %v, %v, want %s", got, err, first)
		}
	})
}

func TestRequestCancel(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		session := s.session(t).ID
		running := s.accept(t, ask(session, "one")).Run
		queued := s.accept(t, ask(session, "two")).Run
		cancel := func(id core.RunID) (core.Run, []core.Event) {
			t.Helper()
			run, events, err := s.runs.RequestCancel(t.Context(), ann(), id)
			if err != nil {
				t.Fatalf("cancel: %v", err)
			}
			stored, err := s.runs.Get(t.Context(), ann(), id)
			if diff := cmp.Diff(stored, run); err != nil || diff != "" {
				t.Errorf("run (-stored +returned): %v\n%s", err, diff)
			}
			return run, events
		}

		run, events := cancel(queued.ID)
		if run.Status != core.RunCanceled || run.FinishedAt == nil {
			t.Errorf("queued: got %+v, want canceled at once", run)
		}
		if diff := cmp.Diff([]core.EventType{core.EventRunCanceled}, types(events)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if told := decode[core.RunData](t, events[0]).Run.Status; told != core.RunCanceled {
			t.Errorf("the event tells of status %s, want canceled", told)
		}
		if run, events := cancel(queued.ID); run.Status != core.RunCanceled || len(events) != 0 {
			t.Errorf("canceled: got %+v with %d events, want it unchanged", run, len(events))
		}
		for range 2 {
			if run, events := cancel(running.ID); run.Status != core.RunRunning || !run.CancelRequested || len(events) != 0 {
				t.Errorf("running: got %+v with %d events, want it marked", run, len(events))
			}
		}
		asked, err := s.runs.CancelRequested(t.Context(), worker)
		if diff := cmp.Diff([]core.RunID{running.ID}, asked); err != nil || diff != "" {
			t.Errorf("cancel requested (-want +got): %v\n%s", err, diff)
		}
		if asked, err := s.runs.CancelRequested(t.Context(), "worker-2"); err != nil || len(asked) != 0 {
			t.Errorf("of another worker: got %v, %v, want none", asked, err)
		}
		s.exec(t, "UPDATE runs SET status = 'waiting', cancel_requested = false WHERE id = ?", running.ID)
		if run, _ := cancel(running.ID); !run.Suspended() || !run.CancelRequested {
			t.Errorf("waiting: got %+v, want it marked and queued, to end", run)
		}
		s.exec(t, "UPDATE runs SET status = 'running' WHERE id = ?", running.ID)
		s.write(t, core.RunWrite{RunID: running.ID, SessionID: session, Attempt: 1, End: &core.RunEnd{Status: core.RunCanceled}})
		if run, events := cancel(running.ID); run.Status != core.RunCanceled || len(events) != 0 {
			t.Errorf("ended: got %+v with %d events, want it unchanged", run, len(events))
		}
		gapless(t, "event", s.allEvents(t, session), func(e core.Event) int64 { return e.Seq })
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
