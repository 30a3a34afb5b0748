package crash_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/records"
)

// talk is people who talk with Bobbin in several sessions, through kills and
// restarts. It remembers everything that was sent and answered.
type talk struct {
	t      *testing.T
	client *client.Client
	board  *board
	closed chan struct{} // no new messages

	senders  sync.WaitGroup
	watchers sync.WaitGroup

	mu        sync.Mutex
	sent      map[string]*records.Sent          // by client_message_id; guarded by mu
	summaries map[core.SessionID][]core.Summary // that a request was answered with; guarded by mu
	feeds     map[core.SessionID]*feed          // guarded by mu
	refused   map[string]int                    // harmless refusals, by their words; guarded by mu
}

// How people talk.
const (
	sendersPerSession = 2
	interruptSession  = 0 // the one in which messages interrupt each other
)

func newTalk(t *testing.T, c *client.Client, b *board) *talk {
	return &talk{
		t: t, client: c, board: b, closed: make(chan struct{}),
		sent: map[string]*records.Sent{}, summaries: map[core.SessionID][]core.Summary{},
		feeds: map[core.SessionID]*feed{}, refused: map[string]int{},
	}
}

// open begins a session: its watcher, its senders, and somebody who asks for
// summaries. They go on until ctx ends or hush is called.
func (k *talk) open(ctx context.Context, n int, id core.SessionID) {
	f := newFeed(k, id)
	k.feeds[id] = f
	k.watchers.Go(func() { f.watch(ctx, id) })
	for i := range sendersPerSession {
		who := n*10 + i
		k.senders.Go(func() { k.speak(ctx, id, who, dice(who)) })
	}
	k.senders.Go(func() { k.summarize(ctx, id, dice(n*10+9)) })
}

// hush lets everybody end: messages on their way are sent until they are accepted.
func (k *talk) hush() {
	close(k.closed)
	k.senders.Wait()
}

func (k *talk) hushed() bool {
	select {
	case <-k.closed:
		return true
	default:
		return false
	}
}

// speak sends one message after the other.
func (k *talk) speak(ctx context.Context, session core.SessionID, who int, r *rand.Rand) {
	for n := 0; !k.hushed() && ctx.Err() == nil; n++ {
		id := fmt.Sprintf("m%d-%d", who, n)
		s := &records.Sent{Session: session, ID: id, Content: records.Compose(id, r)}
		m := core.SendMessage{SessionID: session, Content: s.Content, ClientMessageID: id}
		if who/10 == interruptSession && r.IntN(6) == 0 {
			m.Multitask = core.MultitaskInterrupt
		}
		k.mu.Lock()
		k.sent[id] = s
		k.mu.Unlock()
		k.deliver(ctx, s, m, r)
		pause(ctx, time.Duration(r.IntN(30))*time.Millisecond)
	}
}

// deliver sends the message until somebody says that it is accepted. One in eight
// senders gives up when the first try fails.
func (k *talk) deliver(ctx context.Context, s *records.Sent, m core.SendMessage, r *rand.Rand) {
	surface, givesUp := r.IntN(3), r.IntN(8) == 0
	k.board.enter(stageAccept)
	for ctx.Err() == nil {
		run, err := records.Send(ctx, k.client, m, surface, k.t.Errorf)
		if err == nil || run != "" {
			k.mu.Lock()
			s.Run = run
			k.mu.Unlock()
			return
		}
		k.refuse(ctx, "message "+s.ID, err, core.ErrRateLimited)
		if givesUp {
			return
		}
		pause(ctx, time.Duration(2+r.IntN(20))*time.Millisecond)
	}
}

// refuse sorts an error: a broken connection is what a kill does; of the server's
// own answers only some are in order.
func (k *talk) refuse(ctx context.Context, what string, err error, harmless ...error) {
	var problem *client.ProblemError
	if ctx.Err() != nil || !errors.As(err, &problem) {
		return
	}
	for _, kind := range harmless {
		if errors.Is(err, kind) {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.refused[kind.Error()]++
			return
		}
	}
	k.t.Errorf("%s: the server answered %d: %v", what, problem.Status, err)
}

// summarize asks for a summary now and then.
func (k *talk) summarize(ctx context.Context, session core.SessionID, r *rand.Rand) {
	for !k.hushed() && pause(ctx, time.Duration(500+r.IntN(2500))*time.Millisecond) {
		s, err := client.Call(ctx, k.client, ops.SummarizeSession, ops.Summarize{InSession: ops.InSession{SessionID: session}})
		if err != nil {
			k.refuse(ctx, "summarize", err, core.ErrConflict, core.ErrUnprocessable)
			continue
		}
		k.mu.Lock()
		k.summaries[session] = append(k.summaries[session], s)
		k.mu.Unlock()
	}
}

// feed is what the watcher of one session was told; its goroutine owns it until
// it has ended.
type feed struct {
	*records.Feed

	talk    *talk
	last    atomic.Int64 // Seq, for others
	version atomic.Int64 // of the newest summary, for others
}

func newFeed(k *talk, id core.SessionID) *feed {
	return &feed{talk: k, Feed: records.NewFeed(func(format string, args ...any) {
		k.t.Errorf("session %s: "+format, append([]any{id}, args...)...)
	})}
}

// watch follows the session through all kills.
func (f *feed) watch(ctx context.Context, id core.SessionID) {
	for ctx.Err() == nil {
		for e, err := range f.talk.client.WatchSession(ctx, id, core.Cursor{After: f.Seq}) {
			if err != nil {
				f.talk.refuse(ctx, "watch", err)
				break
			}
			f.event(e)
		}
		pause(ctx, time.Millisecond)
	}
}

// event checks an event, and tells the killers of it.
func (f *feed) event(e core.Event) {
	f.Take(e)
	f.last.Store(f.Seq)
	if e.Type == core.EventContextCompleted && !records.Decoded[core.ContextData](e).Ahead { // else it is told of again when it is activated
		f.version.Add(1)
	}
	f.talk.board.event(e)
}
