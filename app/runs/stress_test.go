package runs_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/runs"
	"bobbin/tests/compare"
	"bobbin/tests/coretest"
	"bobbin/tests/seed"
)

// Accepts, cancels, claims, ends, faults of the database, and restarts meet in
// every order: each accepted message is answered or canceled in the end, once, in
// the order of acceptance.
func TestEverythingAtOnce(t *testing.T) {
	t.Parallel()
	seed.SkipInCI(t)
	for n := range uint64(20) {
		t.Run(fmt.Sprint("case ", n), func(t *testing.T) {
			simulate(t, func(t *testing.T) { everything(t, n) })
		})
	}
}

// dice is a random source for many goroutines.
type dice struct {
	mu sync.Mutex
	r  *rand.Rand
}

func (d *dice) n(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.IntN(n)
}

func (d *dice) wait(most time.Duration) { <-time.After(time.Duration(d.n(int(most)))) }

func everything(t *testing.T, stream uint64) {
	d := &dice{r: seed.Rand(t, stream)}
	db := coretest.New()
	do := func(ctx context.Context, j *runs.Recorder, run core.Run) error {
		if err := closeCalls(ctx, j, run, db.Log(run.SessionID)); err != nil {
			return err
		}
		return randomRun(ctx, d, j, run)
	}
	limits := runs.Limits{Concurrent: 4, Grace: 5 * time.Second}
	start := func(worker string) *process { return newProcess(t, db, worker, limits, do).run(t) }
	a, b := start("a"), start("b")
	sessions := []core.Session{a.session, b.session, db.AddSession()}
	db.Before(func(call string) error {
		if (call == "Write" || call == "Claim" || call == "Renew") && d.n(20) == 0 {
			return errDown
		}
		return nil
	})
	db.After(func(call string) error {
		if call == "Write" && d.n(30) == 0 {
			return errDown
		}
		return nil
	})
	var writers sync.WaitGroup
	for i := range 6 {
		writers.Go(func() {
			for n := range 10 {
				p := []*process{a, b}[d.n(2)]
				send(t, d, p, sessions[d.n(3)].ID, fmt.Sprint(i, ".", n))
				d.wait(2 * time.Second)
			}
		})
	}
	d.wait(10 * time.Second)
	a.stop() // what it accepts from now on is found by the other, and by its restart
	again := start("a/2")
	writers.Wait()
	db.Before(nil)
	db.After(nil)
	<-time.After(10 * time.Minute)
	again.stop()
	b.stop()
	for _, s := range sessions {
		checkSession(t, db, s.ID)
	}
}

// send accepts a message through a process, and now and then cancels it.
func send(t *testing.T, d *dice, p *process, session core.SessionID, content string) {
	store := p.db.Runs
	acc, err := p.service.Begin(t.Context(), func(worker string) (core.Accepted, error) {
		return store.Accept(t.Context(), ann, core.AcceptRun{
			SessionID: session, Worker: worker, Input: core.RunInput{Content: content},
		})
	})
	if err != nil {
		t.Errorf("accept: %v", err)
		return
	}
	if d.n(4) > 0 {
		return
	}
	d.wait(3 * time.Second)
	run, _, err := store.RequestCancel(t.Context(), ann, acc.Run.ID)
	compare.Error(t, "cancel", nil, err)
	if run.Status == core.RunRunning {
		p.service.Cancel(run.ID)
	}
}

// closeCalls answers the calls that an attempt before this one left open.
func closeCalls(ctx context.Context, j *runs.Recorder, run core.Run, log []core.Message) error {
	open := map[string]bool{}
	for _, m := range log {
		for _, c := range m.ToolCalls {
			if m.RunID == run.ID {
				open[c.ID] = true
			}
		}
		delete(open, m.ToolCallID)
	}
	for id := range open {
		result := message(run, core.RoleTool, "interrupted")
		result.ToolCallID = id
		if _, err := j.Append(ctx, write(run, result)); err != nil {
			return err
		}
	}
	return nil
}

// randomRun says something, perhaps calls a tool, and ends in one of many ways.
func randomRun(ctx context.Context, d *dice, j *runs.Recorder, run core.Run) error {
	if d.n(3) == 0 {
		if err := callTool(ctx, j, run, d.n(2) == 0); err != nil {
			return err
		}
	}
	id := core.NewID[core.MessageID]()
	for i := range d.n(5) {
		say(ctx, j, run, id, i, "x")
		select {
		case <-time.After(time.Duration(d.n(int(3 * time.Second)))):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	switch d.n(6) {
	case 0:
		return core.ErrModel
	case 1:
		panic("at random")
	default:
		return answer(ctx, j, run)
	}
}

// callTool appends a tool call and, unless that fails, its result.
func callTool(ctx context.Context, j *runs.Recorder, run core.Run, fails bool) error {
	call := message(run, core.RoleAssistant, "")
	call.ToolCalls = []core.ToolCall{{ID: string(core.NewID[core.MessageID]()), Name: "clock"}}
	if _, err := j.Append(ctx, write(run, call)); err != nil {
		return err
	}
	if fails {
		return errors.New("tools are out of order")
	}
	result := message(run, core.RoleTool, "noon")
	result.ToolCallID = call.ToolCalls[0].ID
	_, err := j.Append(ctx, write(run, result))
	return err
}

// checkSession checks that every run has ended, and that the messages came into
// the log in the order of acceptance, once each.
func checkSession(t *testing.T, db *coretest.Store, id core.SessionID) {
	t.Helper()
	var want []core.MessageID
	answers := map[core.RunID]int{}
	for _, r := range db.RunsOf(id) {
		if !r.Status.Ended() {
			t.Errorf("run %s is %s (attempt %d of %s), want it ended", r.ID, r.Status, r.Attempt, r.LeaseOwner)
		}
		if r.StartedAt != nil {
			want = append(want, r.UserMessageID)
		}
		answers[r.ID] = 0
		if r.Status == core.RunSucceeded {
			answers[r.ID] = 1
		}
	}
	var got []core.MessageID
	for _, m := range db.Log(id) {
		switch {
		case m.Role == core.RoleUser:
			got = append(got, m.ID)
		case m.Role == core.RoleAssistant && m.Status == core.MessageComplete && len(m.ToolCalls) == 0:
			answers[m.RunID]--
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got user messages %v in the log, want %v", got, want)
	}
	for run, n := range answers {
		if n != 0 {
			t.Errorf("run %s has %d answers too few", run, n)
		}
	}
}
