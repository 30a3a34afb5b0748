package e2e_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/process"
	"bobbin/tests/provider"
)

// pair is two replicas, joined by their own cluster, whose agent "careful" asks before it
// calculates. An answer to a question with a word that begins with "hold" stays half
// until that word is let go.
type pair struct {
	t       *testing.T
	a, b    *apptest.Bobbin
	arrived chan string

	mu    sync.Mutex
	gates map[string]chan struct{} // guarded by mu
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{t: t, arrived: make(chan string, 100), gates: map[string]chan struct{}{}}
	model := apptest.NewProvider(t, provider.Options{Window: 32_000, Hold: p.hold, Calls: func(r provider.Received) []provider.Call {
		last := r.Messages[len(r.Messages)-1]
		if last.Role != "user" || !strings.Contains(last.Text, "calculator") {
			return nil
		}
		return []provider.Call{{ID: "call_1", Name: "calculator", Arguments: `{"expression": "6*7"}`}}
	}})
	t.Cleanup(p.letAllGo)
	addr := process.FreeAddress(t)
	url := dbtest.PostgresURL(t)
	agent := apptest.WithAgent("careful", "name: careful\nsystem_prompt: You ask before you act.\ntools: [calculator]\ntool_settings:\n  calculator: {approval: always}\n")
	p.a = apptest.New(t, url, apptest.WithModel("house", 32_000, 2048, model), apptest.WithGrace(time.Millisecond), withCluster(addr), agent)
	p.b = apptest.New(t, url, apptest.WithModel("house", 32_000, 2048, model), apptest.WithGrace(time.Millisecond), withCluster("127.0.0.1:0", addr), agent)
	return p
}

// gate returns what keeps the answers to questions with the word.
func (p *pair) gate(word string) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gates[word] == nil {
		p.gates[word] = make(chan struct{})
	}
	return p.gates[word]
}

// hold is provider.Options.Hold.
func (p *pair) hold(question string) {
	for _, word := range strings.Fields(question) {
		if strings.HasPrefix(word, "hold") {
			p.arrived <- word
			<-p.gate(word)
			return
		}
	}
}

func (p *pair) letGo(word string) { close(p.gate(word)) }

// letAllGo lets the provider end.
func (p *pair) letAllGo() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, gate := range p.gates {
		select {
		case <-gate:
		default:
			close(gate)
		}
	}
}

// send sends a message at a house and returns at once.
func (p *pair) send(ctx context.Context, h *apptest.Bobbin, id core.SessionID, content string, multitask core.Multitask) core.Run {
	p.t.Helper()
	run, err := h.SendAsync(ctx, core.SendMessage{SessionID: id, Content: content, Multitask: multitask})
	if err != nil {
		p.t.Fatal(err)
	}
	return run
}

// half sends a message at a house, in a new session, and returns when half of its answer
// is there.
func (p *pair) half(ctx context.Context, h *apptest.Bobbin, content string) core.Run {
	p.t.Helper()
	run := p.send(ctx, h, apptest.NewSession(p.t, h.Client, core.Session{}), content, "")
	<-p.arrived
	l := newRunLog(p.t)
	l.follow(ctx, h.Client, run.ID, l.saysSomething)
	return run
}

// roles are those of a session's messages, with their states.
func (p *pair) roles(id core.SessionID) (roles []string) {
	p.t.Helper()
	for _, m := range apptest.ListMessages(p.t, p.b.Client, id) {
		roles = append(roles, string(m.Role)+" "+string(m.Status))
	}
	return roles
}

func (p *pair) wantRoles(id core.SessionID, want ...string) {
	p.t.Helper()
	if got := p.roles(id); strings.Join(got, ", ") != strings.Join(want, ", ") {
		p.t.Errorf("got the log %q, want %q", got, want)
	}
}

// both does the same at both houses at once.
func (p *pair) both(do func(i int, h *apptest.Bobbin) error) (errs [2]error) {
	var wg sync.WaitGroup
	for i, h := range []*apptest.Bobbin{p.a, p.b} {
		wg.Go(func() { errs[i] = do(i, h) })
	}
	wg.Wait()
	return errs
}

// TestWorkOfTwoReplicas: whatever is asked of one replica about a run of the other
// happens, and of two who ask at once one wins (life of a run).
func TestWorkOfTwoReplicas(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	p := newPair(t)
	for _, do := range []func(context.Context, *pair){interrupted, rejected, waitedFor, decidedTwice, decidedAndCanceled, decidedAndWritten, closedElsewhere, canceledElsewhere, handedOver} {
		do(ctx, p) // the last one stops a house
	}
}

// interrupted: a message at b interrupts the run of a, whose half answer is kept.
func interrupted(ctx context.Context, p *pair) {
	first := p.half(ctx, p.a, "hold-interrupt one")
	got, err := p.b.SendAndWait(ctx, core.SendMessage{SessionID: first.SessionID, Content: "two", Multitask: core.MultitaskInterrupt})
	if err != nil || got.Run.Status != core.RunSucceeded {
		p.t.Errorf("interrupt: got %s, %v", got.Run.Status, err)
	}
	if run, err := p.b.Run(ctx, first.ID); err != nil || run.Status != core.RunCanceled || run.AnswerID == "" {
		p.t.Errorf("interrupted: got %s with answer %q, %v, want it canceled, and half an answer", run.Status, run.AnswerID, err)
	}
	p.wantRoles(first.SessionID, "user complete", "assistant partial", "user complete", "assistant complete")
}

// rejected: of two messages at once that want no queue one is answered.
func rejected(ctx context.Context, p *pair) {
	id := apptest.NewSession(p.t, p.a.Client, core.Session{})
	var runs [2]core.Run
	errs := p.both(func(i int, h *apptest.Bobbin) (err error) {
		runs[i], err = h.SendAsync(ctx, core.SendMessage{SessionID: id, Content: "hold-reject", Multitask: core.MultitaskReject})
		return err
	})
	won := 0
	if errs[0] != nil {
		won = 1
	}
	if errs[won] != nil || !errors.Is(errs[1-won], core.ErrConflict) {
		p.t.Errorf("rejected: got %v, want one conflict", errs)
	}
	<-p.arrived
	p.letGo("hold-reject")
	newRunLog(p.t).follow(ctx, p.b.Client, runs[won].ID, never)
	p.wantRoles(id, "user complete", "assistant complete")
}

// waitedFor: a message that waits at b for the run of a is answered when that has ended,
// and who waits for the answer truly waits.
func waitedFor(ctx context.Context, p *pair) {
	first := p.half(ctx, p.a, "hold-wait one")
	queued := p.send(ctx, p.b, first.SessionID, "two", core.MultitaskEnqueue)
	if queued.Status != core.RunQueued {
		p.t.Errorf("queued: got %s", queued.Status)
	}
	answer := make(chan client.Answer, 1)
	go func() {
		got, err := p.b.SendAndWait(ctx, core.SendMessage{SessionID: first.SessionID, Content: "three", Multitask: core.MultitaskEnqueue})
		if err != nil {
			p.t.Errorf("wait: %v", err)
		}
		answer <- got
	}()
	for e, err := range p.a.WatchSession(ctx, first.SessionID, core.Cursor{}) { // until the third is accepted
		if err != nil {
			p.t.Error(err)
			return
		}
		if e.Type == core.EventRunQueued && e.RunID != queued.ID {
			break
		}
	}
	if len(answer) != 0 {
		p.t.Error("who waits did not wait")
	}
	p.letGo("hold-wait")
	if got := <-answer; got.Run.Status != core.RunSucceeded || got.Message == nil || got.Message.Content != "answer to: three" {
		p.t.Errorf("waited: got %+v", got)
	}
	p.wantRoles(first.SessionID, "user complete", "assistant complete", "user complete", "assistant complete", "user complete", "assistant complete")
}

// decidedTwice: of two decisions at once at two replicas one counts, and the run goes on
// once.
func decidedTwice(ctx context.Context, p *pair) {
	run := asks(p.t, p.a, "calculator please")
	errs := p.both(func(i int, h *apptest.Bobbin) error {
		_, err := h.Decide(ctx, run.ID, run.Approvals[0].ID, core.ApprovalDecision{Approve: i == 0})
		return err
	})
	want := "calculator: 42"
	if errs[0] != nil {
		want = "calculator: not approved"
		errs[0], errs[1] = errs[1], errs[0]
	}
	if errs[0] != nil || !errors.Is(errs[1], core.ErrConflict) {
		p.t.Errorf("decided: got %v, want one conflict", errs)
	}
	wantEnd(p.t, p.b, run.ID, core.RunSucceeded, want)
	if got, err := p.a.Run(ctx, run.ID); err != nil || got.Attempt != 2 {
		p.t.Errorf("decided: got attempt %d, %v, want the second", got.Attempt, err)
	}
}

// calledOnce checks that the one call of a session has one result.
func (p *pair) calledOnce(id core.SessionID) {
	p.t.Helper()
	results := 0
	for _, m := range apptest.ListMessages(p.t, p.b.Client, id) {
		if m.Role == core.RoleTool {
			results++
		}
	}
	if results != 1 {
		p.t.Errorf("got %d results of one call: %q", results, p.roles(id))
	}
}

// decidedAndCanceled: a is told to go on and b to cancel, at once: the run ends one way
// or the other.
func decidedAndCanceled(ctx context.Context, p *pair) {
	for range 3 {
		run := asks(p.t, p.a, "calculator please")
		errs := p.both(func(i int, h *apptest.Bobbin) (err error) {
			if i == 0 {
				_, err = h.Decide(ctx, run.ID, run.Approvals[0].ID, core.ApprovalDecision{Approve: true})
			} else {
				_, err = h.CancelRun(ctx, run.ID, true)
			}
			return err
		})
		if errs[0] != nil && !errors.Is(errs[0], core.ErrConflict) || errs[1] != nil {
			p.t.Errorf("decided and canceled: got %v, want a decision or a conflict, and a cancel", errs)
		}
		got, err := p.a.Run(ctx, run.ID)
		if err != nil || !got.Status.Ended() || errs[0] != nil && got.Status != core.RunCanceled || got.Status == core.RunFailed {
			p.t.Errorf("decided (%v) and canceled: got %s, %v", errs[0], got.Status, err)
		}
		p.calledOnce(run.SessionID)
	}
}

// decidedAndWritten: a is told to go on while the user writes to b: the message is
// answered, after the run that went on, or instead of it.
func decidedAndWritten(ctx context.Context, p *pair) {
	for range 3 {
		run := asks(p.t, p.a, "calculator please")
		var answer client.Answer
		errs := p.both(func(i int, h *apptest.Bobbin) (err error) {
			if i == 0 {
				_, err = h.Decide(ctx, run.ID, run.Approvals[0].ID, core.ApprovalDecision{Approve: true})
			} else {
				answer, err = h.SendAndWait(ctx, core.SendMessage{SessionID: run.SessionID, Content: "and you?"})
			}
			return err
		})
		if errs[0] != nil && !errors.Is(errs[0], core.ErrConflict) || errs[1] != nil || answer.Run.Status != core.RunSucceeded {
			p.t.Errorf("decided and written: got %v and %s", errs, answer.Run.Status)
		}
		want := core.RunSucceeded
		if errs[0] != nil {
			want = core.RunCanceled
		}
		if got, err := p.b.Run(ctx, run.ID); err != nil || got.Status != want {
			p.t.Errorf("decided (%v) and written: got %s, %v, want %s", errs[0], got.Status, err, want)
		}
		p.calledOnce(run.SessionID)
	}
}

// closedElsewhere: a new message at b closes the question of the run that a let wait.
func closedElsewhere(ctx context.Context, p *pair) {
	run := asks(p.t, p.a, "calculator please")
	got, err := p.b.SendAndWait(ctx, core.SendMessage{SessionID: run.SessionID, Content: "never mind"})
	if err != nil || got.Run.Status != core.RunSucceeded {
		p.t.Errorf("instead: got %s, %v", got.Run.Status, err)
	}
	wantEnd(p.t, p.a, run.ID, core.RunCanceled, "calculator: not approved: the user wrote instead")
	_, err = p.a.Decide(ctx, run.ID, run.Approvals[0].ID, core.ApprovalDecision{Approve: true})
	wantProblem(p.t, err, core.ErrConflict, http.StatusConflict, "closed")
}

// canceledElsewhere: a cancel at both replicas at once of a run of a, and of one that is
// queued behind it, waits for the end of both; the call of a tool has its result.
func canceledElsewhere(ctx context.Context, p *pair) {
	first := p.half(ctx, p.a, "hold-cancel one")
	queued := p.send(ctx, p.b, first.SessionID, "two", core.MultitaskEnqueue)
	for _, run := range []core.Run{queued, first} {
		errs := p.both(func(_ int, h *apptest.Bobbin) error {
			got, err := h.CancelRun(ctx, run.ID, true)
			if err == nil && got.Status != core.RunCanceled {
				err = errors.New("it has " + string(got.Status))
			}
			return err
		})
		if err := errors.Join(errs[:]...); err != nil {
			p.t.Errorf("cancel: %v", err)
		}
	}
	p.wantRoles(first.SessionID, "user complete", "assistant partial")
	waiting := asks(p.t, p.a, "calculator please")
	if got, err := p.b.CancelRun(ctx, waiting.ID, true); err != nil || got.Status != core.RunCanceled {
		p.t.Errorf("cancel of a waiting run: got %s, %v", got.Status, err)
	}
	wantEnd(p.t, p.a, waiting.ID, core.RunCanceled, "calculator: not approved: the run was canceled")
}

// handedOver: a stops with a run in the middle of its answer, one that waits for a
// person, and one in the queue: b goes on with all of them, and who waits at b for the
// run of a gets its answer.
func handedOver(ctx context.Context, p *pair) {
	waiting := asks(p.t, p.a, "calculator please")
	first := p.half(ctx, p.a, "hold-stop one")
	queued := p.send(ctx, p.a, first.SessionID, "two", core.MultitaskEnqueue)
	answer := make(chan client.Answer, 1)
	go func() {
		got, err := p.b.SendAndWait(ctx, core.SendMessage{SessionID: first.SessionID, Content: "three", Multitask: core.MultitaskEnqueue})
		if err != nil {
			p.t.Errorf("wait over a stop: %v", err)
		}
		answer <- got
	}()
	p.a.Stop()
	p.letGo("hold-stop")
	if got := <-answer; got.Run.Status != core.RunSucceeded {
		p.t.Errorf("waited over a stop: got %s", got.Run.Status)
	}
	for run, attempt := range map[core.RunID]int{first.ID: 2, queued.ID: 1} {
		if got, err := p.b.Run(ctx, run); err != nil || got.Status != core.RunSucceeded || got.Attempt != attempt {
			p.t.Errorf("handed over: got %s in attempt %d, %v, want %d", got.Status, got.Attempt, err, attempt)
		}
	}
	p.wantRoles(first.SessionID, "user complete", "assistant complete", "user complete", "assistant complete", "user complete", "assistant complete")
	decide(p.t, p.b, waiting, core.ApprovalDecision{Approve: true})
	wantEnd(p.t, p.b, waiting.ID, core.RunSucceeded, "calculator: 42")
}

// TestApprovalExpiresElsewhere: a run waits, its replica is gone, and nobody decides: the
// other one goes on with it when the time is over.
func TestApprovalExpiresElsewhere(t *testing.T) {
	t.Parallel()
	url := dbtest.PostgresURL(t)
	h := apptest.NewAsking(t, url, func(c *config.Config) { c.Limits.ApprovalTime = time.Nanosecond }, apptest.WithGrace(0))
	run := asks(t, h, "calculator")
	h.Stop()
	other := apptest.NewAsking(t, url)
	wantEnd(t, other, run.ID, core.RunSucceeded, "calculator: not approved: nobody answered in time")
}
