package compaction

import (
	"context"
	"sync"

	"bobbin/app/core"
)

// flights lets one compaction of a session go on at a time.
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

// acquire waits until no other compaction of the session goes on, or ctx ends.
// The caller must call release once. Waited says that another one went on, so
// that what the caller knows of the session is old.
func (f *flights) acquire(ctx context.Context, id core.SessionID) (release func(), waited bool, err error) {
	if release, ok := f.tryAcquire(id); ok {
		return release, false, nil
	}
	fl := f.join(id)
	select {
	case <-fl.slot:
		return func() { fl.slot <- struct{}{}; f.leave(id, fl) }, true, nil
	case <-ctx.Done():
		f.leave(id, fl)
		return nil, false, context.Cause(ctx)
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
