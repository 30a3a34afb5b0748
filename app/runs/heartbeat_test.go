package runs_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/app/events"
	"bobbin/app/runs"
	"bobbin/tests/compare"
	"bobbin/tests/coretest"
)

// While the database is unavailable no process can renew a lease. A process that survives keeps
// its runs; those of a process that died meanwhile are taken over one lease later.
func TestOutageLongerThanALease(t *testing.T) {
	t.Parallel()
	for _, away := range []time.Duration{5 * time.Second, 31 * time.Second, 40 * time.Second, 2 * time.Minute} {
		t.Run(away.String(), func(t *testing.T) {
			simulate(t, func(t *testing.T) {
				db := coretest.New()
				var all []core.Run
				for i := range 3 {
					p := newProcess(t, db, fmt.Sprint("w", i, "/1"), runs.Limits{}, slowly(4*time.Minute)).run(t)
					all = append(all, p.accept(t, "hello"))
					<-time.After(time.Second) // their clocks do not tick together
				}
				<-time.After(time.Minute)
				dead := newProcess(t, db, "dead/1", runs.Limits{}, answer)
				dead.dead = true
				left := dead.accept(t, "left behind")
				db.Before(func(string) error { return errDown })
				<-time.After(away)
				db.Before(nil)
				<-time.After(29 * time.Second)
				if got := dead.wantStatus(t, left, core.RunRunning); away > core.RunLease && got.LeaseOwner != "dead/1" {
					t.Errorf("got the dead process's run at %s within a lease, want patience", got.LeaseOwner)
				}
				<-time.After(6 * time.Second)
				compare.Equal(t, "attempt of the dead process's run", 2, db.Run(left.ID).Attempt)
				<-time.After(5 * time.Minute)
				for _, run := range all {
					got := dead.wantStatus(t, run, core.RunSucceeded)
					compare.Equal(t, "attempt, deaths of a run whose process lived", []any{1, 0}, []any{got.Attempt, got.Deaths})
				}
			})
		})
	}
}

// While a table is locked the database responds to reads, and no process can renew a lease. A
// process without runs notices at its first take-over, at most one sweep after a lease.
func TestLockedLongerThanALease(t *testing.T) {
	t.Parallel()
	for _, locked := range []time.Duration{36 * time.Second, 2 * time.Minute, 2*time.Minute + 3*time.Second, 2*time.Minute + 7*time.Second} {
		t.Run(locked.String(), func(t *testing.T) {
			simulate(t, func(t *testing.T) {
				db := coretest.New()
				p := newProcess(t, db, "w/1", runs.Limits{}, slowly(4*time.Minute)).run(t)
				newProcess(t, db, "idle/1", runs.Limits{}, answer).run(t)
				run := p.accept(t, "hello")
				<-time.After(time.Minute)
				db.Before(func(op string) error {
					if op == "Renew" || op == "TakeOver" {
						return errDown
					}
					return nil
				})
				<-time.After(locked)
				db.Before(nil)
				<-time.After(5 * time.Minute)
				got := p.wantStatus(t, run, core.RunSucceeded)
				compare.Equal(t, "attempt, deaths of a run whose process lived", []any{1, 0}, []any{got.Attempt, got.Deaths})
			})
		})
	}
}

// A process that is started when the database has just come back leaves the runs of those
// alone that lived through it, and takes over its own.
func TestStartAfterAnOutage(t *testing.T) {
	simulate(t, func(t *testing.T) {
		db := coretest.New()
		p := newProcess(t, db, "w/1", runs.Limits{}, slowly(2*time.Minute)).run(t)
		theirs := p.accept(t, "theirs")
		dead := newProcess(t, db, "dead/1", runs.Limits{}, answer)
		dead.dead = true
		own := dead.accept(t, "own")
		again := newProcess(t, db, "dead/2", runs.Limits{}, answer)
		synctest.Wait()
		db.Before(func(string) error { return errDown })
		<-time.After(time.Minute)
		again.run(t)
		<-time.After(time.Second)
		db.Before(nil)
		<-again.service.Ready()
		synctest.Wait()
		again.wantStatus(t, own, core.RunSucceeded)
		<-time.After(3 * time.Minute)
		compare.Equal(t, "attempt", 1, p.wantStatus(t, theirs, core.RunSucceeded).Attempt)
	})
}

// lateAnswer is storage whose answer to a Renew is handled late.
type lateAnswer struct {
	coretest.Runs
	before func()
	after  func(lost []core.RunID)
}

// Renew calls before and after around the statement.
func (l *lateAnswer) Renew(ctx context.Context, worker string, ids []core.RunID) ([]core.RunID, error) {
	l.before()
	lost, err := l.Runs.Renew(ctx, worker, ids)
	l.after(lost)
	return lost, err
}

// A run begins to wait for a decision while the heartbeat asks for it: it is not running any
// more, so that its lease is lost. The decision comes, and this process works on the next
// attempt before the response to the heartbeat is handled: that attempt continues.
func TestLateHeartbeatSparesTheNextAttempt(t *testing.T) {
	simulate(t, func(t *testing.T) {
		db := coretest.New()
		asked, waits := make(chan struct{}), make(chan struct{})
		store := &lateAnswer{Runs: db.Runs}
		p := newProcess(t, db, "w", runs.Limits{}, func(ctx context.Context, j *runs.Recorder, run core.Run) error {
			if run.Attempt > 1 {
				select {
				case <-time.After(time.Second):
				case <-ctx.Done():
					return context.Cause(ctx)
				}
				return answer(ctx, j, run)
			}
			<-asked
			w := write(run)
			w.Wait = &core.RunWait{Approvals: []core.Approval{{ToolCallID: "c1", Tool: "pay", Mode: core.ApprovalAlways}}}
			_, err := j.Append(ctx, w)
			close(waits)
			return err
		}, func(o *runs.Options) { o.Store = store })
		var once, decided atomic.Bool
		store.before = func() {
			if once.CompareAndSwap(false, true) {
				close(asked)
				<-waits
			}
		}
		store.after = func(lost []core.RunID) {
			if len(lost) > 0 && decided.CompareAndSwap(false, true) {
				approve(t, db, lost[0])
				p.service.Next(context.Background(), db.Run(lost[0]).SessionID)
			}
		}
		p.run(t)
		run := p.accept(t, "pay")
		<-time.After(12 * time.Second)
		got := p.wantStatus(t, run, core.RunSucceeded)
		compare.Equal(t, "attempt, decided in between", []any{2, true}, []any{got.Attempt, decided.Load()})
	})
}

// approve approves what the run waits for.
func approve(t *testing.T, db *coretest.Store, run core.RunID) {
	t.Helper()
	all, err := db.Runs.Approvals(context.Background(), run)
	if err == nil {
		_, err = db.Runs.Decide(context.Background(), ann, run, all[len(all)-1].ID, core.ApprovalDecision{Approve: true, By: "ann"})
	}
	if err != nil {
		t.Error(err)
	}
}

// Decisions are no attempts: a run that was approved many times outlives a database that is
// away as well as any other.
func TestDecisionsAreNotGiveBacks(t *testing.T) {
	simulate(t, func(t *testing.T) {
		db := coretest.New()
		away := &core.Error{Kind: core.ErrUnavailable, Err: core.ErrNoDatabase}
		p := newProcess(t, db, "w", runs.Limits{}, func(ctx context.Context, j *runs.Recorder, run core.Run) error {
			switch {
			case run.Attempt <= 30:
				w := write(run)
				w.Wait = &core.RunWait{Approvals: []core.Approval{{ToolCallID: fmt.Sprint("c", run.Attempt), Tool: "pay", Mode: core.ApprovalAlways}}}
				_, err := j.Append(ctx, w)
				return err
			case run.Attempt <= 33:
				return fmt.Errorf("load messages: %w", away)
			}
			return answer(ctx, j, run)
		}).run(t)
		run := p.accept(t, "pay thirty bills")
		for range 30 {
			synctest.Wait()
			approve(t, db, run.ID)
			p.service.Next(t.Context(), run.SessionID)
		}
		<-time.After(time.Minute)
		got := p.wantStatus(t, run, core.RunSucceeded)
		compare.Equal(t, "give-backs, deaths", []any{3, 0}, []any{got.GiveBacks, got.Deaths})
	})
}

// stuckDraft is storage in which one draft has to wait.
type stuckDraft struct {
	coretest.Runs
	mu    sync.Mutex
	stuck core.RunID          // guarded by mu
	saved map[core.RunID]bool // guarded by mu
}

// SavePartial waits for the end of ctx, or saves.
func (s *stuckDraft) SavePartial(ctx context.Context, run core.RunID, _ int, _ string) error {
	s.mu.Lock()
	stuck := run == s.stuck
	s.saved[run] = !stuck
	s.mu.Unlock()
	if stuck {
		<-ctx.Done()
	}
	return ctx.Err()
}

// One draft that waits for the database does not hold up the others.
func TestDraftsAreSavedBesideEachOther(t *testing.T) {
	simulate(t, func(t *testing.T) {
		db := coretest.New()
		store := &stuckDraft{Runs: db.Runs, saved: map[core.RunID]bool{}}
		p := newProcess(t, db, "w", runs.Limits{}, nil, func(o *runs.Options) {
			o.Journal = runs.NewRecorder(store, events.New(events.NewLocal(0), nil, o.Logger), o.Logger)
			o.Execute = engine{o.Journal, func(ctx context.Context, j *runs.Recorder, run core.Run) error {
				say(ctx, j, run, run.DraftID(1, 0), 0, "so far")
				return hang(ctx, j, run)
			}}.Execute
		}).run(t)
		for i := range 6 {
			p.session = db.AddSession()
			run := p.accept(t, fmt.Sprint(i))
			store.mu.Lock()
			store.stuck = run.ID
			store.mu.Unlock()
		}
		<-time.After(1500 * time.Millisecond)
		store.mu.Lock()
		defer store.mu.Unlock()
		saved := 0
		for _, done := range store.saved {
			if done {
				saved++
			}
		}
		compare.Equal(t, "drafts saved while one waits: want the other 5", 5, saved)
	})
}
