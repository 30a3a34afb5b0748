package runs_test

import (
	"context"
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

// An acceptance was committed, but its answer got lost: the run begins when the message is
// sent again, once.
func TestRepeatBeginsAForgottenRun(t *testing.T) {
	simulate(t, func(t *testing.T) {
		db := coretest.New()
		var executions atomic.Int32
		p := newProcess(t, db, "w/1", runs.Limits{}, func(ctx context.Context, j *runs.Recorder, run core.Run) error {
			executions.Add(1)
			<-time.After(time.Second)
			return answer(ctx, j, run)
		}).run(t)
		loseAnswer(db, "Accept", 1)
		if _, err := p.sendAgain(t, "m1"); err == nil {
			t.Fatal("got no error, want the answer lost")
		}
		for range 3 { // the client is impatient
			a, err := p.sendAgain(t, "m1")
			if err != nil || !a.Repeated || a.Run.Status != core.RunRunning {
				t.Fatalf("got %+v, %v, want the run of the first time", a, err)
			}
		}
		<-time.After(1500 * time.Millisecond)
		a, err := p.sendAgain(t, "m1")
		if err != nil || a.Run.Status != core.RunSucceeded || a.Run.Attempt != 1 {
			t.Errorf("got %s in attempt %d, %v, want it answered in the first", a.Run.Status, a.Run.Attempt, err)
		}
		synctest.Wait()
		if n := executions.Load(); n != 1 || p.service.Active() != 0 {
			t.Errorf("got %d executions, want one", n)
		}
	})
}

// A repeated message that was read before its run ended does not begin it again.
func TestRepeatOfARunThatEnds(t *testing.T) {
	simulate(t, func(t *testing.T) {
		db := coretest.New()
		var executions atomic.Int32
		p := newProcess(t, db, "w/1", runs.Limits{}, func(ctx context.Context, j *runs.Recorder, run core.Run) error {
			executions.Add(1)
			return slowly(time.Second)(ctx, j, run)
		}).run(t)
		run := p.accept(t, "hello")
		_, err := p.service.Begin(t.Context(), func(string) (core.Accepted, error) {
			read := db.Run(run.ID)
			<-time.After(2 * time.Second)
			return core.Accepted{Run: read, Repeated: true}, nil
		})
		synctest.Wait()
		if n := executions.Load(); err != nil || n != 1 {
			t.Errorf("got %d executions, %v, want one", n, err)
		}
	})
}

// A claim was committed, but the response got lost: the next try finds the run, even if
// the database is unavailable in between.
func TestClaimWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		tries int32 // that are lost
		after time.Duration
	}{{"once", 1, time.Second}, {"until the sweep", claimTries + 1, 10 * time.Second}} {
		t.Run(c.name, func(t *testing.T) {
			simulate(t, func(t *testing.T) {
				db := coretest.New()
				p := newProcess(t, db, "w/1", runs.Limits{}, slowly(time.Second)).run(t)
				p.accept(t, "one")
				next := p.accept(t, "two")
				loseAnswer(db, "Claim", c.tries)
				<-time.After(2*time.Second + c.after)
				compare.Equal(t, "attempt: want the first", 1, p.wantStatus(t, next, core.RunSucceeded).Attempt)
			})
		})
	}
}

// claimTries is how often a claim is tried at a time.
const claimTries = 3

// A forgotten run that is sent again to a process without a free slot begins elsewhere.
func TestRepeatWithoutAFreeSlot(t *testing.T) {
	simulate(t, func(t *testing.T) {
		db, signals := coretest.New(), &bus{}
		p := newProcess(t, db, "one/1", runs.Limits{Concurrent: 1}, slowly(time.Minute), signals.join).run(t)
		loseAnswer(db, "Accept", 1)
		if _, err := p.sendAgain(t, "m1"); err == nil {
			t.Fatal("got no error, want the answer lost")
		}
		forgotten := p.session
		p.session = db.AddSession()
		p.accept(t, "takes the slot")
		p.session = forgotten
		newProcess(t, db, "two/1", runs.Limits{}, answer, signals.join).run(t)
		a := must.Get(p.sendAgain(t, "m1"))(t)
		synctest.Wait()
		compare.Equal(t, "deaths", 0, p.wantStatus(t, a.Run, core.RunSucceeded).Deaths)
	})
}
