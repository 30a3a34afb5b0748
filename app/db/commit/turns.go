package commit

import (
	"context"
	"sync"
	"time"

	"bobbin/app/core"
)

// MaxTurnWait is how long a writer waits for a session.
const MaxTurnWait = 10 * time.Second

// maxWaiters bounds the writers that wait for one session. They hold no connection.
const maxWaiters = 256

// SessionTurns lets one writer of a session in at a time, in the order of arrival, so that
// the clients of one session never occupy more than one connection of the pool. Safe for
// concurrent use.
type SessionTurns struct {
	mu     sync.Mutex
	queues map[core.SessionID]*turnQueue // guarded by mu
}

// turnQueue holds the writers of one session.
type turnQueue struct {
	turn    chan struct{} // holds one token while a writer is active
	writers int           // active and waiting
}

// Take waits for the caller's turn to write to the session; release ends it. The error is a
// core.SessionBusy after 10 s, and immediately while 256 writers wait.
func (t *SessionTurns) Take(ctx context.Context, id core.SessionID) (release func(), err error) {
	t.mu.Lock()
	q := t.queues[id]
	if q == nil {
		q = &turnQueue{turn: make(chan struct{}, 1)}
		t.queues[id] = q
	}
	q.writers++
	tooMany := q.writers > maxWaiters+1
	t.mu.Unlock()
	if tooMany {
		t.removeWriter(id, q)
		return nil, core.SessionBusy(id, "too many requests are waiting to write to it")
	}
	limit := time.NewTimer(MaxTurnWait)
	defer limit.Stop()
	select {
	case q.turn <- struct{}{}:
		return func() {
			<-q.turn
			t.removeWriter(id, q)
		}, nil
	case <-limit.C:
		err = core.SessionBusy(id, "another request is writing to it")
	case <-ctx.Done():
		err = ctx.Err()
	}
	t.removeWriter(id, q)
	return nil, err
}

func (t *SessionTurns) removeWriter(id core.SessionID, q *turnQueue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q.writers--; q.writers == 0 {
		delete(t.queues, id)
	}
}
