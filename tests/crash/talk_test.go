package crash_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/process"
	"bobbin/tests/records"
)

// talk is people who talk through the replicas. It remembers everything that was sent.
type talk struct {
	world  *world
	closed chan struct{} // no new messages
	wait   sync.WaitGroup

	mu      sync.Mutex
	sent    map[string]*records.Sent // by id; guarded by mu
	tries   int                      // of sending; guarded by mu
	repeats int                      // of messages that were accepted; guarded by mu
	cancels int                      // guarded by mu
	refused map[string]int           // harmless answers, by their status; guarded by mu
	decided int                      // answers to questions that were taken; guarded by mu
}

// tryTime bounds one try to send: after it the answer counts as lost.
const tryTime = 20 * time.Second

// open makes a session and begins to talk in it. Its requests are sent until they are
// answered, with one key.
func (k *talk) open(ctx context.Context, n int) core.SessionID {
	c := traveler{road: k.world.road, share: 0.3, life: 200 * time.Millisecond}
	var session core.Session
	agent := "assistant"
	if n%4 == 3 {
		agent = "careful"
	}
	key := fmt.Sprintf("session-%d", n)
	request := client.NewRequest(ops.CreateSession.Operation, ops.NewSession{Title: fmt.Sprintf("session %d", n), Agent: agent})
	for session.ID == "" && ctx.Err() == nil {
		k.attempt(ctx, "open "+key, func(ctx context.Context) error {
			return post(ctx, c.client(k.world.t), request, key, &session)
		})
	}
	return session.ID
}

// speakers begins to talk in the session.
func (k *talk) speakers(ctx context.Context, n int, session core.SessionID) {
	for i := range 2 {
		k.wait.Go(func() { k.speak(ctx, session, n*10+i, dice(n*10+i)) })
	}
}

// speak sends one message after the other. Together all people of many sessions send
// about eight a second.
func (k *talk) speak(ctx context.Context, session core.SessionID, who int, r *rand.Rand) {
	think := time.Duration(k.world.sessions) * 2 * 125 * time.Millisecond
	if k.world.sessions < 30 {
		think /= 2 // each has time for something
	}
	for n := 0; process.PauseUnless(ctx, time.Duration(r.ExpFloat64()*float64(think)), k.closed); n++ {
		id := fmt.Sprintf("m%d-%d", who, n)
		s := &records.Sent{Session: session, ID: id, Content: records.Compose(id, r)}
		m := core.SendMessage{SessionID: session, Content: s.Content, ClientMessageID: id}
		if r.IntN(10) == 0 {
			m.Multitask = core.MultitaskInterrupt
		}
		k.mu.Lock()
		k.sent[id] = s
		k.mu.Unlock()
		k.deliver(ctx, s, m, r)
	}
}

// deliver sends the message until somebody says that it is accepted, always by the same
// id. One in ten senders gives up when the first try fails.
func (k *talk) deliver(ctx context.Context, s *records.Sent, m core.SendMessage, r *rand.Rand) {
	v := traveler{road: k.world.road, share: 0.25, life: 400 * time.Millisecond}
	surface, givesUp, repeats, cancels := r.IntN(3), r.IntN(10) == 0, r.IntN(5) == 0, r.IntN(14) == 0
	late := time.Duration(r.IntN(600)) * time.Millisecond
	var run core.RunID
	for run == "" && ctx.Err() == nil {
		k.attempt(ctx, "message "+s.ID, func(ctx context.Context) (err error) {
			run, err = k.send(ctx, v, m, surface)
			return err
		})
		if run == "" && (givesUp || !process.Pause(ctx, time.Duration(20+r.IntN(200))*time.Millisecond)) {
			return
		}
	}
	k.mu.Lock()
	s.Run = run
	k.mu.Unlock()
	if cancels && process.Pause(ctx, late) {
		k.cancel(ctx, v, run, r.IntN(2) == 0)
	}
	if repeats {
		k.repeat(ctx, v, m, run)
	}
}

// attempt does something once, within tryTime, and sorts its error.
func (k *talk) attempt(ctx context.Context, what string, do func(ctx context.Context) error) {
	k.mu.Lock()
	k.tries++
	k.mu.Unlock()
	try, stop := context.WithTimeout(ctx, tryTime)
	defer stop()
	if err := do(try); err != nil {
		k.refuse(what, err)
	}
}

// refuse sorts an error: of the servers' own answers only some are in order.
func (k *talk) refuse(what string, err error) {
	if !harmless(err) {
		k.world.violate("%s: the answer was: %v", what, err)
		return
	}
	word := "connection broke"
	if problem, ok := errors.AsType[*client.ProblemError](err); ok {
		word = strconv.Itoa(problem.Status) + " " + problem.Code
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refused[word]++
}

// send sends the message once by one of the surfaces and returns its run.
func (k *talk) send(ctx context.Context, v traveler, m core.SendMessage, surface int) (core.RunID, error) {
	if surface == 0 {
		return async(ctx, v.client(k.world.t), m)
	}
	return records.Send(ctx, v.client(k.world.t), m, surface, k.world.violate)
}

// repeat sends an accepted message again: it is the same run.
func (k *talk) repeat(ctx context.Context, v traveler, m core.SendMessage, run core.RunID) {
	var again core.RunID
	k.attempt(ctx, "repeated message "+m.ClientMessageID, func(ctx context.Context) (err error) {
		again, err = async(ctx, v.client(k.world.t), m)
		return err
	})
	k.mu.Lock()
	k.repeats++
	k.mu.Unlock()
	if again != "" && again != run {
		k.world.violate("message %s has run %s, and when it was repeated %s", m.ClientMessageID, run, again)
	}
}

// cancel cancels the run, which may have ended; with wait it must have when the answer
// comes in time.
func (k *talk) cancel(ctx context.Context, v traveler, run core.RunID, wait bool) {
	k.mu.Lock()
	k.cancels++
	k.mu.Unlock()
	k.attempt(ctx, "cancel of run "+string(run), func(ctx context.Context) error {
		ended, err := client.Call(ctx, v.client(k.world.t), ops.CancelRun, ops.Cancel{InRun: ops.InRun{RunID: run}, Wait: wait})
		if err == nil && wait && !ended.Status.Ended() {
			k.world.violate("cancel of run %s with wait answered with status %s", run, ended.Status)
		}
		return err
	})
}

// decide answers a question whether a tool may start, sooner or later, until it is told
// that this, or another answer, was taken. Two do so for each, and may disagree.
func (k *talk) decide(ctx context.Context, a core.Approval) {
	v := traveler{road: k.world.road, share: 0.25, life: 400 * time.Millisecond}
	for over := false; !over && process.Pause(ctx, randomDelay(2*time.Second)); {
		k.attempt(ctx, "answer to question "+string(a.ID), func(ctx context.Context) error {
			_, err := client.Call(ctx, v.client(k.world.t), ops.DecideApproval, ops.Decision{
				InRun: ops.InRun{RunID: a.RunID}, ApprovalID: a.ID, Decision: []string{"deny", "approve", "approve"}[shared.IntN(3)],
			})
			if over = err == nil || errors.Is(err, core.ErrConflict); !over {
				return err
			}
			if err == nil {
				k.mu.Lock()
				k.decided++
				k.mu.Unlock()
			}
			return nil
		})
	}
}

// async sends the message with its id as Idempotency-Key and returns its run at once.
func async(ctx context.Context, c *client.Client, m core.SendMessage) (core.RunID, error) {
	in := ops.NewMessage{InSession: ops.InSession{SessionID: m.SessionID}, Content: m.Content, Multitask: m.Multitask}
	var answer ops.RunAnswer
	err := post(ctx, c, client.NewRequest(ops.SendMessage.Operation, in), m.ClientMessageID, &answer)
	return answer.Run.ID, err
}

// post sends a request with a key and reads the answer.
func post(ctx context.Context, c *client.Client, r client.Request, key string, into any) error {
	r.Header["Idempotency-Key"], r.Header["Prefer"] = key, "respond-async"
	res, err := c.Do(ctx, r)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	return json.NewDecoder(res.Body).Decode(into)
}

// watcher follows a session through everything.
type watcher struct {
	name     string
	session  core.SessionID
	traveler traveler
	slow     bool // it takes its time
	violated func(format string, args ...any)
	refused  func(err error)
	asked    func(a core.Approval) // of each question whether a tool may start

	gaveUp atomic.Int64 // how often the client did not mend its connection

	mu   sync.Mutex
	feed *records.Feed // guarded by mu
}

// seen returns the number of the last event that came.
func (w *watcher) seen() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.feed.Seq
}

// take takes an event.
func (w *watcher) take(ctx context.Context, e core.Event) {
	w.mu.Lock()
	w.feed.Take(e)
	w.mu.Unlock()
	if e.Type == core.EventApprovalRequested {
		w.asked(records.Decoded[core.ApprovalData](e).Approval)
	}
	if w.slow && !w.traveler.road.calm.Load() {
		process.Pause(ctx, randomDelay(200*time.Millisecond))
	}
}

// begin says that a connection begins, and returns the number after which it begins.
func (w *watcher) begin() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.feed.Connected()
	return w.feed.Seq
}

// follow follows with Bobbin's own client, which reconnects by itself.
func (w *watcher) follow(ctx context.Context, c *client.Client) {
	for ctx.Err() == nil {
		for e, err := range c.WatchSession(ctx, w.session, core.Cursor{After: w.begin()}) {
			if err != nil {
				if ctx.Err() == nil {
					w.gaveUp.Add(1)
				}
				w.refused(err)
				break
			}
			w.take(ctx, e)
		}
		process.Pause(ctx, 100*time.Millisecond)
	}
}

// harmless reports whether faults explain what a client was told: a connection that
// broke, or an answer that says to come again.
func harmless(err error) bool {
	var problem *client.ProblemError
	if !errors.As(err, &problem) {
		return true
	}
	switch problem.Status {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusGatewayTimeout:
		return true
	default:
		return problem.Code == "request_in_progress" || problem.Code == core.CodeSessionBusy // a frozen replica may hold the session's lock
	}
}
