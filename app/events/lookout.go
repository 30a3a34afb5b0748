package events

import (
	"context"
	"fmt"
	"sync"
	"time"

	"bobbin/app/core"
)

// How watchers look into the store together.
const (
	lookWindow = 50 * time.Millisecond // so long one waits for others who look, too
	lookMost   = 500                   // sessions in one question
)

// lookout asks the store for the newest events of several sessions at once: of all that
// somebody looks for within a moment. Thousands of watchers on whose sessions nothing
// happens cost some questions a second, not thousands. Safe for concurrent use.
type lookout struct {
	store eventStore

	mu   sync.Mutex
	next *glance // that still takes sessions; nil = none; guarded by mu
}

// glance is one look for several watchers.
type glance struct {
	sessions map[core.SessionID]struct{} // fixed once it is not lookout.next any more
	done     chan struct{}               // closed when what follows is there
	newest   map[core.SessionID]int64
	err      error
}

// over returns what is closed when everything was seen; nil for no glance.
func (g *glance) over() <-chan struct{} {
	if g == nil {
		return nil
	}
	return g.done
}

// of returns the number of the session's newest event, and false for a session that is
// not there any more, when the glance is over.
func (g *glance) of(session core.SessionID) (int64, bool, error) {
	seq, ok := g.newest[session]
	return seq, ok, g.err
}

// join returns a glance that will see the session as it is from now on. It does not look
// whose the session is.
func (l *lookout) join(ctx context.Context, session core.SessionID) *glance {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == nil {
		g := &glance{sessions: map[core.SessionID]struct{}{}, done: make(chan struct{})}
		l.next = g
		time.AfterFunc(lookWindow, func() { l.look(ctx, g) })
	}
	g := l.next
	g.sessions[session] = struct{}{}
	if len(g.sessions) == lookMost {
		l.next = nil
	}
	return g
}

// look asks the store.
func (l *lookout) look(ctx context.Context, g *glance) {
	l.mu.Lock()
	if l.next == g {
		l.next = nil
	}
	l.mu.Unlock()
	defer close(g.done)
	sessions := make([]core.SessionID, 0, len(g.sessions))
	for id := range g.sessions {
		sessions = append(sessions, id)
	}
	if g.newest, g.err = l.store.LastOf(ctx, sessions); g.err != nil {
		g.err = fmt.Errorf("newest events of %d sessions: %w", len(sessions), g.err)
	}
}
