package runs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/app/runs"
	"bobbin/tests/compare"
	"bobbin/tests/coretest"
	"bobbin/tests/must"
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

// Nobody is let in before the runs of the process before are taken over: a run that
// is accepted earlier would be taken for one of them.
func TestReadyWhenTakenOver(t *testing.T) {
	simulate(t, func(t *testing.T) {
		db := coretest.New()
		db.Before(always("Due"))
		p := newProcess(t, db, "w", runs.Limits{}, answer).run(t)
		ready := func() bool {
			select {
			case <-p.service.Ready():
				return true
			default:
				return false
			}
		}
		compare.True(t, !ready(), "got ready while the database was away, want not")
		db.Before(nil)
		<-p.service.Ready()
		got := db.CallCount("Due")
		compare.True(t, got >= 2, "got ready after %d tries to look for runs, want a second one", got)
	})
}

// A run that cannot continue because the database is unavailable does not fail: it is requeued
// when the database is back, and another attempt continues immediately.
func TestRunOutlivesTheDatabase(t *testing.T) {
	simulate(t, func(t *testing.T) {
		db := coretest.New()
		away := &core.Error{Kind: core.ErrUnavailable, Err: core.ErrNoDatabase}
		p := newProcess(t, db, "w", runs.Limits{}, func(ctx context.Context, j *runs.Recorder, run core.Run) error {
			if run.Attempt == 1 {
				say(ctx, j, run, run.DraftID(1, 0), 0, "half")
				db.Before(func(string) error { return away })
				return fmt.Errorf("load messages: %w", away)
			}
			return answer(ctx, j, run)
		}).run(t)
		run := p.accept(t, "hello")
		<-time.After(time.Minute) // longer than a lease: this process alone holds it
		p.wantStatus(t, run, core.RunRunning)
		db.Before(nil)
		<-time.After(10*time.Second + time.Millisecond) // the next try, and the next sweep
		compare.Equal(t, "attempt: want the second", 2, p.wantStatus(t, run, core.RunSucceeded).Attempt)
		p.wantTexts(t, "hello", "re: hello")
		got := p.discarded()
		compare.True(t, slices.Contains(got, run.DraftID(1, 0)), "got %v taken back, want what the first attempt said", got)
	})
}

// A run is handed back, too, if a part that it waits for stops before the run itself does.
func TestPartStopsBeforeTheRun(t *testing.T) {
	simulate(t, func(t *testing.T) {
		db := coretest.New()
		p := newProcess(t, db, "w", runs.Limits{}, func(_ context.Context, _ *runs.Recorder, _ core.Run) error {
			<-time.After(time.Second)
			return fmt.Errorf("summarize: %w", core.ErrStopping)
		}).run(t)
		run := p.accept(t, "hello")
		synctest.Wait()
		p.stop()
		compare.Equal(t, "a lease of: want it released", "", p.wantStatus(t, run, core.RunRunning).LeaseOwner)
		late := newProcess(t, db, "w2", runs.Limits{}, answer).run(t)
		<-time.After(5*time.Second + time.Millisecond)
		late.wantStatus(t, run, core.RunSucceeded)
	})
}

// A database that seems to be away again and again ends the run at last.
func TestRunDoesNotComeBackForEver(t *testing.T) {
	simulate(t, func(t *testing.T) {
		p := newProcess(t, coretest.New(), "w", runs.Limits{}, func(context.Context, *runs.Recorder, core.Run) error {
			return &core.Error{Kind: core.ErrUnavailable, Code: "database_unavailable", Message: "away", Err: core.ErrNoDatabase}
		}).run(t)
		run := p.accept(t, "hello")
		<-time.After(5 * time.Minute)
		got := p.wantStatus(t, run, core.RunFailed)
		compare.True(t, got.Error != nil && got.Error.Code == "database_unavailable", "got error %+v, want that the database is away", got.Error)
	})
}

// A cancel that came in through another process is seen by the heartbeat.
func TestCancelFromElsewhere(t *testing.T) {
	simulate(t, func(t *testing.T) {
		p := newProcess(t, coretest.New(), "w", runs.Limits{}, hang).run(t)
		run := p.accept(t, "hello")
		must.Get2(p.db.Runs.RequestCancel(t.Context(), ann, run.ID))(t)
		<-time.After(10*time.Second + time.Millisecond)
		p.wantStatus(t, run, core.RunCanceled)
	})
}

// A write of an older attempt is refused. The loser stops silently.
func TestLostRunIsLeftAlone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		writes int
		do     execute
	}{
		{"the engine is told", 1, func(ctx context.Context, j *runs.Recorder, run core.Run) error {
			<-time.After(time.Second)
			return answer(ctx, j, run)
		}},
		{"the heartbeat is told", 0, hang},
	} {
		t.Run(c.name, func(t *testing.T) {
			simulate(t, func(t *testing.T) {
				db := coretest.New()
				p := newProcess(t, db, "w", runs.Limits{}, c.do).run(t)
				run := p.accept(t, "hello")
				next := p.accept(t, "next")
				// Somebody takes the run over, as after a long suspension of w.
				takeOver(t, db, "w", "other")
				<-time.After(11 * time.Second)
				got := p.wantStatus(t, run, core.RunRunning)
				compare.Equal(t, "attempt, owner", []any{2, "other"}, []any{got.Attempt, got.LeaseOwner})
				p.wantTexts(t, "hello")
				p.wantStatus(t, next, core.RunQueued)
				compare.Equal(t, "writes: want the end is somebody else's", c.writes, db.CallCount("Write"))
				compare.Equal(t, "active runs", 0, p.service.Active())
			})
		})
	}
}

// Stopping has two steps. A run that finishes within the grace period is stored; the others are
// handed back, not ended, and continue after the restart.
func TestStop(t *testing.T) {
	simulate(t, func(t *testing.T) {
		db := coretest.New()
		do := func(ctx context.Context, j *runs.Recorder, run core.Run) error {
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
		compare.Equal(t, "a stop of: want the grace of 30 s", 30*time.Second, time.Since(begin))
		p.wantStatus(t, quick, core.RunSucceeded)
		p.wantStatus(t, after, core.RunQueued)
		p.wantStatus(t, parked, core.RunQueued)
		got := p.wantStatus(t, slow, core.RunRunning)
		compare.True(t, got.LeaseOwner == "" && !got.LeaseUntil.After(time.Now()), "got a lease of %q until %v, want it released", got.LeaseOwner, got.LeaseUntil)
		late := newProcess(t, db, "w2", runs.Limits{}, do).run(t) // another replica, at once
		<-time.After(5*time.Second + time.Millisecond)
		for _, run := range []core.Run{quick, after, slow, parked} {
			late.wantStatus(t, run, core.RunSucceeded)
		}
		late.session = quiet
		late.wantTexts(t, "quick", "re: quick", "after quick", "re: after quick")
		late.session = core.Session{ID: slow.SessionID}
		late.wantTexts(t, "slow", "re: slow")
		types := late.types()
		compare.True(t, slices.Contains(types, core.EventMessageDiscarded), "got events %v, want the text of the first attempt taken back", types)
	})
}

// A run that arrives while a process stops goes to another process immediately, not when the
// lease has lapsed.
func TestNothingBeginsWhileStopping(t *testing.T) {
	simulate(t, func(t *testing.T) {
		db := coretest.New()
		p := newProcess(t, db, "w", runs.Limits{}, answer).run(t)
		began, err := p.service.Begin(t.Context(), func(worker string) (core.Accepted, error) {
			a, err := db.Runs.Accept(t.Context(), ann, core.AcceptRun{SessionID: p.session.ID, Worker: worker})
			p.stop()
			return a, err
		})
		must.Do(t, err)
		p.session = db.AddSession()
		late := p.accept(t, "too late")
		synctest.Wait()
		p.wantStatus(t, began.Run, core.RunRunning) // to be taken over
		p.wantStatus(t, late, core.RunQueued)
		newProcess(t, db, "other", runs.Limits{}, answer).run(t)
		got := p.wantStatus(t, began.Run, core.RunSucceeded)
		compare.Equal(t, "attempt, deaths: want the other one's", []any{2, 0}, []any{got.Attempt, got.Deaths})
		p.wantStatus(t, late, core.RunSucceeded)
		compare.Equal(t, "active runs", 0, p.service.Active())
	})
}

func TestStopDoesNotWaitForeverForADeafEngine(t *testing.T) {
	simulate(t, func(t *testing.T) {
		p := newProcess(t, coretest.New(), "w", runs.Limits{}, func(context.Context, *runs.Recorder, core.Run) error {
			<-time.After(time.Hour)
			return nil
		}).run(t)
		p.accept(t, "hello")
		synctest.Wait()
		begin := time.Now()
		p.stop()
		compare.Equal(t, "a stop of: want 40 s", 40*time.Second, time.Since(begin))
		<-time.After(time.Hour)
		synctest.Wait()
		compare.Contains(t, "got no word of it in the log", "runs do not stop", p.log.String())
	})
}

// A result is not lost if the database is unavailable when the run ends; nor does the process
// take over its own run when the database is back.
func TestDatabaseIsAwayAtTheEndOfARun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		do   execute
		want core.RunStatus
		log  []string
	}{
		{"an answer", answer, core.RunSucceeded, []string{"hello", "re: hello", "next", "re: next"}},
		{"a failure", func(context.Context, *runs.Recorder, core.Run) error { return errors.New("x") }, core.RunFailed, []string{"hello", "next"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			simulate(t, func(t *testing.T) {
				p := newProcess(t, coretest.New(), "w", runs.Limits{}, c.do).run(t)
				synctest.Wait()
				var down atomic.Bool
				p.db.Before(func(call string) error {
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
				compare.Equal(t, "attempt", 1, p.wantStatus(t, run, c.want).Attempt)
				p.wantTexts(t, c.log...)
			})
		})
	}
}
