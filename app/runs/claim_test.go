package runs_test

import (
	"sync/atomic"
	"testing"
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
