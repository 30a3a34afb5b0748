package runs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/app/runs"
	"bobbin/app/runs/runstest"
)

var errDown = errors.New("connection refused")

// always lets the named calls fail.
func always(names ...string) func(string) error {
	return func(call string) error {
		if slices.Contains(names, call) {
			return errDown
		}
		return nil
	}
}

// ENGINE: the runs of a killed process are taken over at once by its restart.
func TestRestartTakesOver(t *testing.T) {
	simulate(t, func(t *testing.T) {
		db := runstest.New()
		dead := newProcess(t, db, "w", runs.Limits{}, answer)
		dead.dead = true
		first := dead.accept(t, "one")
		second := dead.accept(t, "two")
		p := newProcess(t, db, "w", runs.Limits{}, answer)
		p.session = dead.session
		p.run(t)
		synctest.Wait()
		if got := p.wantStatus(t, first, core.RunSucceeded); got.Attempt != 2 {
			t.Errorf("got attempt %d, want 2", got.Attempt)
		}
		p.wantStatus(t, second, core.RunSucceeded)
		p.wantTexts(t, "one", "re: one", "two", "re: two")
	})
}

// Nobody is let in before the runs of the process before are taken over: a run that
// is accepted earlier would be taken for one of them.
func TestReadyWhenTakenOver(t *testing.T) {
	simulate(t, func(t *testing.T) {
		db := runstest.New()
		db.Fail(always("TakeOver"))
		p := newProcess(t, db, "w", runs.Limits{}, answer).run(t)
		ready := func() bool {
			select {
			case <-p.service.Ready():
				return true
			default:
				return false
			}
		}
		if ready() {
			t.Error("got ready while the database was away, want not")
		}
		db.Fail(nil)
		<-p.service.Ready()
		if got := db.Calls("TakeOver"); got < 2 {
			t.Errorf("got ready after %d tries to take over, want a second one", got)
		}
	})
}

// ENGINE: the runs of a killed replica are taken over within 35 s.
func TestLapsedLeaseIsTakenOver(t *testing.T) {
	simulate(t, func(t *testing.T) {
		db := runstest.New()
		p := newProcess(t, db, "w", runs.Limits{}, answer).run(t)
		dead := newProcess(t, db, "other", runs.Limits{}, answer)
		dead.dead = true
		begin := time.Now()
		run := dead.accept(t, "hello")
		<-time.After(25 * time.Second)
		p.wantStatus(t, run, core.RunRunning)
		<-time.After(10*time.Second + time.Millisecond)
		got := p.wantStatus(t, run, core.RunSucceeded)
		if took := got.FinishedAt.Sub(begin); took > 35*time.Second {
			t.Errorf("got the answer after %v, want at most 35 s", took)
		}
	})
}

// A run that cannot go on because the database is away does not fail: it is given back
// when the database is there again, and another attempt goes on at once.
func TestRunOutlivesTheDatabase(t *testing.T) {
	simulate(t, func(t *testing.T) {
		db := runstest.New()
		away := &core.Error{Kind: core.ErrUnavailable, Err: core.ErrNoDatabase}
		p := newProcess(t, db, "w", runs.Limits{}, func(ctx context.Context, j *runs.Journal, run core.Run) error {
			if run.Attempt == 1 {
				say(ctx, j, run, run.DraftID(1, 0), 0, "half")
				db.Fail(func(string) error { return away })
				return fmt.Errorf("load messages: %w", away)
			}
			return answer(ctx, j, run)
		}).run(t)
		run := p.accept(t, "hello")
		<-time.After(time.Minute) // longer than a lease: this process alone holds it
		p.wantStatus(t, run, core.RunRunning)
		db.Fail(nil)
		<-time.After(10*time.Second + time.Millisecond) // the next try, and the next sweep
		if got := p.wantStatus(t, run, core.RunSucceeded); got.Attempt != 2 {
			t.Errorf("got attempt %d, want the second", got.Attempt)
		}
		p.wantTexts(t, "hello", "re: hello")
		if got := p.discarded(); !slices.Contains(got, run.DraftID(1, 0)) {
			t.Errorf("got %v taken back, want what the first attempt said", got)
		}
	})
}

// A database that seems to be away again and again ends the run at last.
func TestRunDoesNotComeBackForEver(t *testing.T) {
	simulate(t, func(t *testing.T) {
		p := newProcess(t, runstest.New(), "w", runs.Limits{}, func(context.Context, *runs.Journal, core.Run) error {
			return &core.Error{Kind: core.ErrUnavailable, Code: "database_unavailable", Message: "away", Err: core.ErrNoDatabase}
		}).run(t)
		run := p.accept(t, "hello")
		<-time.After(5 * time.Minute)
		if got := p.wantStatus(t, run, core.RunFailed); got.Error == nil || got.Error.Code != "database_unavailable" {
			t.Errorf("got error %+v, want that the database is away", got.Error)
		}
	})
}

func TestStandingQueueIsFound(t *testing.T) {
	simulate(t, func(t *testing.T) {
		p := newProcess(t, runstest.New(), "w", runs.Limits{}, answer).run(t)
		p.db.Fail(always("Claim"))
		p.accept(t, "one")
		second := p.accept(t, "two")
		synctest.Wait()
		p.db.Fail(nil)
		p.wantStatus(t, second, core.RunQueued)
		<-time.After(5*time.Second + time.Millisecond)
		p.wantStatus(t, second, core.RunSucceeded)
	})
}

func TestLeasesAreRenewed(t *testing.T) {
	simulate(t, func(t *testing.T) {
		db := runstest.New()
		p := newProcess(t, db, "w", runs.Limits{}, func(ctx context.Context, j *runs.Journal, run core.Run) error {
			<-time.After(5 * time.Minute)
			return answer(ctx, j, run)
		}).run(t)
		newProcess(t, db, "other", runs.Limits{}, answer).run(t)
		run := p.accept(t, "hello")
		<-time.After(5*time.Minute + time.Millisecond)
		if got := p.wantStatus(t, run, core.RunSucceeded); got.Attempt != 1 {
			t.Errorf("got attempt %d, want 1: nobody may take it over", got.Attempt)
		}
	})
}

// A cancel that came in through another process is seen by the heartbeat.
func TestCancelFromElsewhere(t *testing.T) {
	simulate(t, func(t *testing.T) {
		p := newProcess(t, runstest.New(), "w", runs.Limits{}, hang).run(t)
		run := p.accept(t, "hello")
		if _, _, err := p.db.RunStore().RequestCancel(t.Context(), ann, run.ID); err != nil {
			t.Fatal(err)
		}
		<-time.After(10*time.Second + time.Millisecond)
		p.wantStatus(t, run, core.RunCanceled)
	})
}

// ENGINE: a write of an older attempt is refused. The loser stops without a word.
func TestLostRunIsLeftAlone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		writes int
		do     execute
	}{
		{"the engine is told", 1, func(ctx context.Context, j *runs.Journal, run core.Run) error {
			<-time.After(time.Second)
			return answer(ctx, j, run)
		}},
		{"the heartbeat is told", 0, hang},
	} {
		t.Run(c.name, func(t *testing.T) {
			simulate(t, func(t *testing.T) {
				db := runstest.New()
				p := newProcess(t, db, "w", runs.Limits{}, c.do).run(t)
				run := p.accept(t, "hello")
				next := p.accept(t, "next")
				// Somebody takes the run over, as after a long suspension of w.
				if err := db.RunStore().Release(t.Context(), "w"); err != nil {
					t.Fatal(err)
				}
				if _, err := db.RunStore().TakeOver(t.Context(), "other", false, 10); err != nil {
					t.Fatal(err)
				}
				<-time.After(11 * time.Second)
				if got := p.wantStatus(t, run, core.RunRunning); got.Attempt != 2 || got.LeaseOwner != "other" {
					t.Errorf("got attempt %d of %s, want 2 of other", got.Attempt, got.LeaseOwner)
				}
				p.wantTexts(t, "hello")
				p.wantStatus(t, next, core.RunQueued)
				if n := db.Calls("Write"); n != c.writes {
					t.Errorf("got %d writes, want %d: the end is somebody else's", n, c.writes)
				}
				if n := p.service.Active(); n != 0 {
					t.Errorf("got %d active runs, want 0", n)
				}
			})
		})
	}
}

// CONVENTIONS: stopping has two steps. What finishes within the grace is stored;
// the rest is handed back, not ended, and goes on after the restart.
func TestStop(t *testing.T) {
	simulate(t, func(t *testing.T) {
		db := runstest.New()
		do := func(ctx context.Context, j *runs.Journal, run core.Run) error {
			switch {
			case run.Attempt > 1:
			case run.Input.Content == "quick":
				<-time.After(20 * time.Second)
			case run.Input.Content == "slow":
				say(ctx, j, run, "m1", 0, "Once upon")
				return hang(ctx, j, run)
			}
			return answer(ctx, j, run)
		}
		p := newProcess(t, db, "w", runs.Limits{Concurrent: 2}, do).run(t)
		quick, after := p.accept(t, "quick"), p.accept(t, "after quick")
		quiet := p.session
		p.session = db.AddSession()
		slow := p.accept(t, "slow")
		synctest.Wait() // both slots are taken
		p.session = db.AddSession()
		parked := p.accept(t, "parked")
		<-time.After(time.Second / 2)
		begin := time.Now()
		p.stop()
		if took := time.Since(begin); took != 30*time.Second {
			t.Errorf("got a stop of %v, want the grace of 30 s", took)
		}
		p.wantStatus(t, quick, core.RunSucceeded)
		p.wantStatus(t, after, core.RunQueued)
		for _, run := range []core.Run{slow, parked} {
			got := p.wantStatus(t, run, core.RunRunning)
			if got.LeaseUntil.After(time.Now()) {
				t.Errorf("got a lease until %v, want it released", got.LeaseUntil)
			}
		}
		late := newProcess(t, db, "w2", runs.Limits{}, do).run(t) // another replica, at once
		<-time.After(5*time.Second + time.Millisecond)
		for _, run := range []core.Run{quick, after, slow, parked} {
			late.wantStatus(t, run, core.RunSucceeded)
		}
		late.session = quiet
		late.wantTexts(t, "quick", "re: quick", "after quick", "re: after quick")
		late.session = core.Session{ID: slow.SessionID}
		late.wantTexts(t, "slow", "re: slow")
		if types := late.types(); !slices.Contains(types, core.EventMessageDiscarded) {
			t.Errorf("got events %v, want the text of the first attempt taken back", types)
		}
	})
}

// What was said since it was last saved is saved when the run is handed back.
func TestHandedBackTextIsSaved(t *testing.T) {
	simulate(t, func(t *testing.T) {
		p := newProcess(t, runstest.New(), "w", runs.Limits{Grace: 100 * time.Millisecond},
			func(ctx context.Context, j *runs.Journal, run core.Run) error {
				say(ctx, j, run, "m1", 0, "Once upon")
				return hang(ctx, j, run)
			}).run(t)
		run := p.accept(t, "hello")
		synctest.Wait()
		p.stop()
		if got := p.wantStatus(t, run, core.RunRunning); !strings.Contains(got.Partial, "Once upon") {
			t.Errorf("got partial %q, want the text so far", got.Partial)
		}
	})
}

// What comes while a process stops is another one's at once, not when the lease is past.
func TestNothingBeginsWhileStopping(t *testing.T) {
	simulate(t, func(t *testing.T) {
		db := runstest.New()
		p := newProcess(t, db, "w", runs.Limits{}, answer).run(t)
		synctest.Wait()
		p.stop()
		run := p.accept(t, "too late")
		synctest.Wait()
		p.wantStatus(t, run, core.RunRunning) // to be taken over
		newProcess(t, db, "other", runs.Limits{}, answer).run(t)
		if got := p.wantStatus(t, run, core.RunSucceeded); got.Attempt != 2 || db.Calls("HandBack") != 1 {
			t.Errorf("got attempt %d, want the other one's", got.Attempt)
		}
		if n := p.service.Active(); n != 0 {
			t.Errorf("got %d active runs, want 0", n)
		}
	})
}

func TestStopDoesNotWaitForeverForADeafEngine(t *testing.T) {
	simulate(t, func(t *testing.T) {
		p := newProcess(t, runstest.New(), "w", runs.Limits{}, func(context.Context, *runs.Journal, core.Run) error {
			<-time.After(time.Hour)
			return nil
		}).run(t)
		p.accept(t, "hello")
		synctest.Wait()
		begin := time.Now()
		p.stop()
		if took := time.Since(begin); took != 40*time.Second {
			t.Errorf("got a stop of %v, want 40 s", took)
		}
		<-time.After(time.Hour)
		synctest.Wait()
		if !strings.Contains(p.log.String(), "runs do not stop") {
			t.Error("got no word of it in the log")
		}
	})
}

func TestStopWhileTheDatabaseIsDown(t *testing.T) {
	simulate(t, func(t *testing.T) {
		p := newProcess(t, runstest.New(), "w", runs.Limits{}, answer)
		p.db.Fail(always("TakeOver", "Release"))
		p.run(t)
		p.accept(t, "hello")
		<-time.After(time.Minute)
		p.stop()
		p.wantTexts(t, "hello")
	})
}

// A result must not be lost because the database is away when the run ends; nor
// may the process take over its own run when the database is back.
func TestDatabaseIsAwayAtTheEndOfARun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		do   execute
		want core.RunStatus
		log  []string
	}{
		{"an answer", answer, core.RunSucceeded, []string{"hello", "re: hello", "next", "re: next"}},
		{"a failure", func(context.Context, *runs.Journal, core.Run) error { return errors.New("x") }, core.RunFailed, []string{"hello", "next"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			simulate(t, func(t *testing.T) {
				p := newProcess(t, runstest.New(), "w", runs.Limits{}, c.do).run(t)
				synctest.Wait()
				var down atomic.Bool
				p.db.Fail(func(call string) error {
					if down.Load() {
						return errDown
					}
					return nil
				})
				run := p.accept(t, "hello")
				down.Store(true)
				<-time.After(2*time.Minute + 2*time.Second) // the sweep comes before the heartbeat
				down.Store(false)
				p.accept(t, "next")
				<-time.After(6 * time.Second)
				if got := p.wantStatus(t, run, c.want); got.Attempt != 1 {
					t.Errorf("got attempt %d, want 1", got.Attempt)
				}
				p.wantTexts(t, c.log...)
			})
		})
	}
}

// A commit whose answer is lost is not done twice, and does not stop the queue.
func TestLostAcknowledgement(t *testing.T) {
	simulate(t, func(t *testing.T) {
		p := newProcess(t, runstest.New(), "w", runs.Limits{}, answer).run(t)
		var once atomic.Bool
		p.db.FailAfter(func(call string) error {
			if call == "Write" && once.CompareAndSwap(false, true) {
				return errDown
			}
			return nil
		})
		first, second := p.accept(t, "one"), p.accept(t, "two")
		<-time.After(time.Second) // the next try; a sweep comes later
		p.wantStatus(t, first, core.RunSucceeded)
		p.wantStatus(t, second, core.RunSucceeded)
		p.wantTexts(t, "one", "re: one", "two", "re: two")
		told := slices.DeleteFunc(p.feed.published(), func(e core.EventType) bool { return e != core.EventRunSucceeded })
		if len(told) != 2 {
			t.Errorf("got run.succeeded published %d times, want 2: who watches would wait", len(told))
		}
	})
}
