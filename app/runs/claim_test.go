package runs_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
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

// loseAnswer lets the next so many calls of a name commit and fail.
func loseAnswer(db *coretest.Store, name string, times int32) {
	var left atomic.Int32
	left.Store(times)
	db.After(func(call string) error {
		if call == name && left.Add(-1) >= 0 {
			return errDown
		}
		return nil
	})
}

// sendAgain sends a message as a client that repeats it until it is accepted.
func (p *process) sendAgain(t *testing.T, id string) (core.Accepted, error) {
	t.Helper()
	return p.service.Begin(t.Context(), func(worker string) (core.Accepted, error) {
		return p.db.Runs.Accept(t.Context(), ann, core.AcceptRun{
			SessionID: p.session.ID, Agent: "assistant", Worker: worker, ClientMessageID: id,
			Input: core.RunInput{Content: "hello"},
		})
	})
}

// An acceptance or a claim was committed, but its answer got lost: the run begins, once, when its lease has lapsed.
func TestForgottenRunBegins(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"Accept", "Claim"} {
		t.Run(call, func(t *testing.T) {
			simulate(t, func(t *testing.T) {
				db := coretest.New()
				p := newProcess(t, db, "w/1", runs.Limits{}, slowly(time.Second)).run(t)
				p.accept(t, "one")
				if call == "Accept" {
					<-time.After(2 * time.Second)
				}
				loseAnswer(db, call, 1)
				_, err := p.sendAgain(t, "m1")
				compare.Equal(t, "lost", call == "Accept", err != nil)
				<-time.After(core.RunLease + 5*time.Second)
				a := must.Get(p.sendAgain(t, "m1"))(t)
				compare.Equal(t, "status, deaths, runs", []any{core.RunSucceeded, 0, 2}, []any{a.Run.Status, a.Run.Deaths, len(db.RunsOf(p.session.ID))})
			})
		})
	}
}

// acceptDying stores a run that processes executed when they died, so many times. The last
// of them was an earlier start of the worker's replica: it is taken over without waiting.
func acceptDying(t *testing.T, db *coretest.Store, worker, content string, deaths int) core.Run {
	t.Helper()
	dead := newProcess(t, db, worker, runs.Limits{}, answer)
	dead.dead = true
	run := dead.accept(t, content)
	for n := 1; n < deaths; n++ {
		over := core.TakeOver{Worker: fmt.Sprint(worker, "/", n), Deaths: n, Limit: 1}
		if n == 3 { // it executed alone
			over.Later = true
		}
		if got, err := db.Runs.TakeOver(t.Context(), over); err != nil || len(got) != 1 || got[0].ID != run.ID {
			t.Fatalf("got %+v, %v, want the run taken over", got, err)
		}
		if over.Later {
			must.Do(t, db.Runs.CountDeath(t.Context(), run.ID, n+1, n))
		}
	}
	return run
}

// A run that executed alone when its process died fails, and is not executed again. The
// session continues.
func TestRunGivesUpAfterItsLastDeath(t *testing.T) {
	simulate(t, func(t *testing.T) {
		db := coretest.New()
		run := acceptDying(t, db, "w", "poison", 4)
		p := newProcess(t, db, "w/9", runs.Limits{}, func(ctx context.Context, j *runs.Recorder, run core.Run) error {
			compare.True(t, run.Input.Content != "poison", "the run was executed again")
			return answer(ctx, j, run)
		})
		p.session = core.Session{ID: run.SessionID}
		next := p.accept(t, "next")
		p.run(t)
		synctest.Wait()
		got := p.wantStatus(t, run, core.RunFailed)
		compare.True(t, got.Error != nil && got.Error.Code == "gave_up" && strings.Contains(got.Error.Message, "Regenerate"), "got error %+v, want gave_up and what to do", got.Error)
		p.wantStatus(t, next, core.RunSucceeded)
	})
}

// A run whose processes died three times executes alone: active runs end first, nothing
// begins beside it, and runs that arrive meanwhile are queued until it has ended.
func TestRunExecutesAlone(t *testing.T) {
	simulate(t, func(t *testing.T) {
		db := coretest.New()
		var now atomic.Int32
		p := newProcess(t, db, "w/9", runs.Limits{}, func(ctx context.Context, j *runs.Recorder, run core.Run) error {
			if n := now.Add(1); n > 1 && run.Input.Content != "at work" {
				t.Errorf("%q begins beside %d others", run.Input.Content, n-1)
			}
			defer now.Add(-1)
			<-time.After(5 * time.Second)
			return answer(ctx, j, run)
		}).run(t)
		run := acceptDying(t, db, "dead", "suspect", 3)
		<-time.After(29 * time.Second)
		before := []core.Run{p.accept(t, "at work")}
		p.session = db.AddSession()
		before = append(before, p.accept(t, "at work"))
		<-time.After(3*time.Second + time.Millisecond) // the sweep
		compare.Equal(t, "the run leased to: want it taken over", "w/9", p.wantStatus(t, run, core.RunRunning).LeaseOwner)
		p.session = db.AddSession()
		after := p.accept(t, "after")
		p.wantStatus(t, after, core.RunQueued)
		<-time.After(5 * time.Second) // at 34 s those at work have ended, and the process is quiet
		for _, r := range before {
			p.wantStatus(t, r, core.RunSucceeded)
		}
		compare.Equal(t, "deaths while it waits: want its last one not counted yet", 2, p.wantStatus(t, run, core.RunRunning).Deaths)
		<-time.After(3 * time.Second) // quietTime has passed
		got := p.wantStatus(t, run, core.RunRunning)
		compare.Equal(t, "deaths, runs at work", []any{3, int32(1)}, []any{got.Deaths, now.Load()})
		p.wantStatus(t, after, core.RunQueued)
		<-time.After(5 * time.Second)
		p.wantStatus(t, run, core.RunSucceeded)
		<-time.After(5 * time.Second)
		p.wantStatus(t, after, core.RunSucceeded)
	})
}

// A run that waits until it executes alone can be canceled, and is handed back when the
// process stops.
func TestWaitForBeingAloneEnds(t *testing.T) {
	simulate(t, func(t *testing.T) {
		db := coretest.New()
		canceled := acceptDying(t, db, "w", "one", 3)
		p := newProcess(t, db, "w/9", runs.Limits{}, answer).run(t)
		p.service.Cancel(canceled.ID)
		synctest.Wait()
		p.wantStatus(t, canceled, core.RunCanceled)
		back := acceptDying(t, db, "w", "two", 3)
		<-time.After(5 * time.Second)
		begin := time.Now()
		p.stop()
		got := p.wantStatus(t, back, core.RunRunning)
		compare.Equal(t, "owner of the lease, time: want it given back immediately", []any{"", time.Duration(0)}, []any{got.LeaseOwner, time.Since(begin)})
	})
}

// Runs whose processes died twice share a few slots; fresh ones execute beside them.
func TestSuspectsShareAFewSlots(t *testing.T) {
	simulate(t, func(t *testing.T) {
		db := coretest.New()
		var all []core.Run
		for range 10 {
			all = append(all, acceptDying(t, db, "w", "suspect", 2))
		}
		once := acceptDying(t, db, "w", "died once", 1)
		var suspects, most atomic.Int32
		p := newProcess(t, db, "w/9", runs.Limits{}, func(ctx context.Context, j *runs.Recorder, run core.Run) error {
			if run.Input.Content == "suspect" {
				most.Store(max(most.Load(), suspects.Add(1)))
				defer suspects.Add(-1)
				<-time.After(time.Second)
			}
			return answer(ctx, j, run)
		}).run(t)
		fresh := p.accept(t, "fresh")
		synctest.Wait()
		p.wantStatus(t, once, core.RunSucceeded)
		p.wantStatus(t, fresh, core.RunSucceeded)
		<-time.After(3 * time.Second)
		synctest.Wait()
		for _, run := range all {
			p.wantStatus(t, run, core.RunSucceeded)
		}
		compare.Equal(t, "of them at the same time", 4, most.Load())
	})
}

// bus carries signals between the processes of a test.
type bus struct {
	mu        sync.Mutex
	listeners []chan core.Wakeup // guarded by mu
}

// join lets a process hear of others.
func (b *bus) join(o *runs.Options) { o.Signals = b }

// Send sends the signal to all.
func (b *bus) Send(_ context.Context, signal core.Wakeup) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.listeners {
		l <- signal
	}
}

// Listen handles what is sent.
func (b *bus) Listen(ctx context.Context, handle func(core.Wakeup)) {
	l := make(chan core.Wakeup, 10_000)
	b.mu.Lock()
	b.listeners = append(b.listeners, l)
	b.mu.Unlock()
	for {
		select {
		case s := <-l:
			handle(s)
		case <-ctx.Done():
			return
		}
	}
}

// slowly answers after a while.
func slowly(d time.Duration) execute {
	return func(ctx context.Context, j *runs.Recorder, run core.Run) error {
		select {
		case <-time.After(d):
			return answer(ctx, j, run)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// A process is overloaded while many runs have waited long to be accepted, not while a few have, or many
// for a moment.
func TestOverload(t *testing.T) {
	for _, tt := range []struct {
		waiting int
		since   time.Duration
		want    bool
	}{{32, 200 * time.Millisecond, true}, {31, time.Second, false}, {200, 199 * time.Millisecond, false}} {
		t.Run(fmt.Sprint(tt.waiting, tt.since), func(t *testing.T) {
			simulate(t, func(t *testing.T) {
				p := newProcess(t, coretest.New(), "one/1", runs.Limits{}, answer)
				for range tt.waiting {
					go func() {
						_, _ = p.service.Begin(t.Context(), func(string) (core.Accepted, error) {
							<-time.After(2 * time.Second)
							return core.Accepted{}, core.ErrConflict // nothing begins
						})
					}()
				}
				<-time.After(tt.since)
				synctest.Wait()
				compare.Equal(t, fmt.Sprintf("%d that wait for %v", tt.waiting, tt.since), tt.want, p.service.IsOverloaded())
				<-time.After(2 * time.Second)
				synctest.Wait()
				compare.Equal(t, "nothing waits", false, p.service.IsOverloaded())
			})
		})
	}
}

// Messages that come to a process without a free slot are queued, and say so; another
// process with a free slot takes its share of them without waiting for a sweep.
func TestProcessesShareTheWork(t *testing.T) {
	simulate(t, func(t *testing.T) {
		db, signals := coretest.New(), &bus{}
		p := newProcess(t, db, "one/1", runs.Limits{Concurrent: 1}, slowly(time.Second), signals.join).run(t)
		newProcess(t, db, "two/1", runs.Limits{Concurrent: 1}, slowly(time.Second), signals.join).run(t)
		var all []core.Run
		for i := range 6 {
			p.session = db.AddSession()
			all = append(all, p.accept(t, fmt.Sprint(i)))
		}
		for i, want := range []core.RunStatus{core.RunRunning, core.RunQueued, core.RunQueued} {
			compare.Equal(t, fmt.Sprintf("status of message %d", i), want, all[i].Status)
		}
		for second := range 3 {
			synctest.Wait()
			by := map[string]int{}
			for _, run := range all {
				if got := db.Run(run.ID); got.Status == core.RunRunning {
					by[got.LeaseOwner]++
				}
			}
			compare.True(t, by["one/1"] == 1 && by["two/1"] == 1, "after %d s: got runs %v, want one in each process", second, by)
			<-time.After(time.Second)
		}
		synctest.Wait()
		for _, run := range all {
			p.wantStatus(t, run, core.RunSucceeded)
		}
	})
}

// What a dead process left behind is leased as slots become free, not before: leases are
// renewed by the heartbeat alone, and only those of runs at work.
func TestLapsedRunsWaitForSlots(t *testing.T) {
	simulate(t, func(t *testing.T) {
		const lapsed, slots = 200, 4
		db := coretest.New()
		p := newProcess(t, db, "w", runs.Limits{Concurrent: slots}, slowly(2*time.Second)).run(t)
		dead := newProcess(t, db, "other", runs.Limits{}, answer)
		dead.dead = true
		var all []core.Run
		for range lapsed {
			dead.session = db.AddSession()
			all = append(all, dead.accept(t, "hello"))
		}
		<-time.After(35 * time.Second)
		before := db.CallCount("Renew")
		for range 20 {
			<-time.After(2 * time.Second)
			held := 0
			for _, run := range all {
				if got := db.Run(run.ID); got.Status == core.RunRunning && got.LeaseOwner == "w" {
					held++
				}
			}
			must.True(t, held <= slots, "got %d leases, want at most one for each of %d slots", held, slots)
		}
		n := db.CallCount("Renew") - before
		compare.True(t, n <= 5, "got %d renewals in 40 s, want those of the heartbeat", n)
		ended := 0
		for _, run := range all {
			if db.Run(run.ID).Status == core.RunSucceeded {
				ended++
			}
		}
		compare.True(t, ended >= 19*slots, "got %d runs answered in 40 s, want the slots busy all the time", ended) // those of the 20th round end at this instant
		p.stop()
	})
}

// The run that has waited longest is next, in any session: a session with many messages does
// not keep the slot.
func TestSlotGoesToWhoWaitsLongest(t *testing.T) {
	simulate(t, func(t *testing.T) {
		db := coretest.New()
		p := newProcess(t, db, "w", runs.Limits{Concurrent: 1}, slowly(time.Second)).run(t)
		p.accept(t, "busy 1")
		busy := p.session
		p.session = db.AddSession()
		<-time.After(time.Millisecond)
		other := p.accept(t, "other")
		<-time.After(time.Millisecond)
		p.session = busy
		last := p.accept(t, "busy 2")
		<-time.After(1500 * time.Millisecond)
		p.wantStatus(t, other, core.RunRunning)
		p.wantStatus(t, last, core.RunQueued)
		<-time.After(2 * time.Second)
		p.wantStatus(t, last, core.RunSucceeded)
	})
}

// slowDue is storage that takes its time to say what is due.
type slowDue struct {
	coretest.Runs
	asked atomic.Int32
}

// Due answers after a second.
func (s *slowDue) Due(ctx context.Context, worker string, lapsed bool) (map[int]int, error) {
	s.asked.Add(1)
	<-time.After(time.Second)
	return s.Runs.Due(ctx, worker, lapsed)
}

// A burst of signals costs one look at the database, and does not hold up a cancel.
func TestSignalsAreCoalesced(t *testing.T) {
	simulate(t, func(t *testing.T) {
		db, signals := coretest.New(), &bus{}
		store := &slowDue{Runs: db.Runs}
		p := newProcess(t, db, "w", runs.Limits{}, hang, signals.join, func(o *runs.Options) { o.Store = store }).run(t)
		<-p.service.Ready()
		run := p.accept(t, "hello")
		synctest.Wait()
		before := store.asked.Load()
		for range 256 {
			signals.Send(t.Context(), core.Wakeup{Free: true})
		}
		signals.Send(t.Context(), core.Wakeup{Cancel: run.ID})
		synctest.Wait()
		p.wantStatus(t, run, core.RunCanceled)
		<-time.After(1900 * time.Millisecond) // the next sweep is later
		n := store.asked.Load() - before
		compare.True(t, n <= 2, "got %d looks for 256 signals, want at most 2", n)
	})
}
