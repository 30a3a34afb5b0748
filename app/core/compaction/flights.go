package compaction

import (
	"context"
	"sync"

	"bobbin/app/core"
)

// flights lets one summary of a session be made at a time in this process.
type flights struct {
	mu   sync.Mutex
	busy map[core.SessionID]*flight // guarded by mu
}

// flight is a session's turn-stile: a token is in slot while nobody is inside.
type flight struct {
	slot  chan struct{}
	users int // inside or waiting; guarded by flights.mu
}

func newFlights() *flights {
	return &flights{busy: map[core.SessionID]*flight{}}
}

// acquire waits until no other summary of the session is made, or ctx ends: its
// cause is the error. The caller must call release once.
func (f *flights) acquire(ctx context.Context, id core.SessionID) (release func(), err error) {
	fl := f.join(id)
	select {
	case <-fl.slot:
		return func() { fl.slot <- struct{}{}; f.leave(id, fl) }, nil
	case <-ctx.Done():
		f.leave(id, fl)
		return nil, context.Cause(ctx)
	}
}

// tryAcquire is acquire that does not wait; ok is false if another goes on.
func (f *flights) tryAcquire(id core.SessionID) (release func(), ok bool) {
	fl := f.join(id)
	select {
	case <-fl.slot:
		return func() { fl.slot <- struct{}{}; f.leave(id, fl) }, true
	default:
		f.leave(id, fl)
		return nil, false
	}
}

func (f *flights) join(id core.SessionID) *flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	fl, ok := f.busy[id]
	if !ok {
		fl = &flight{slot: make(chan struct{}, 1)}
		fl.slot <- struct{}{}
		f.busy[id] = fl
	}
	fl.users++
	return fl
}

func (f *flights) leave(id core.SessionID, fl *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fl.users--; fl.users == 0 {
		delete(f.busy, id)
	}
}
