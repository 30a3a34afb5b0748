package events

import (
	"context"
	"fmt"
	"sync"
	"time"

	"bobbin/app/core"
)

// How lookups are batched.
const (
	batchWindow = 50 * time.Millisecond // the wait for other lookups
	maxBatch    = 500                   // sessions in one query
)

// batchedLookup reads the newest event numbers of several sessions with one query, batching
// lookups that arrive within batchWindow. Thousands of watchers of idle sessions cost some
// queries a second, not thousands. Safe for concurrent use.
type batchedLookup struct {
	store core.EventStore

	mu   sync.Mutex
	next *lookup // that accepts sessions; nil = none; guarded by mu
}

// lookup is one query for several watchers.
type lookup struct {
	sessions map[core.SessionID]struct{} // fixed when it is no longer batchedLookup.next
	done     chan struct{}               // closed when the results are there
	newest   map[core.SessionID]int64
	err      error
}

// doneChan returns a channel that is closed when the results are there; nil for no lookup.
func (g *lookup) doneChan() <-chan struct{} {
	if g == nil {
		return nil
	}
	return g.done
}

// addSession returns a lookup that will read the session as it is from now on. It does not
// check the owner.
func (l *batchedLookup) addSession(ctx context.Context, session core.SessionID) *lookup {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == nil {
		g := &lookup{sessions: map[core.SessionID]struct{}{}, done: make(chan struct{})}
		l.next = g
		time.AfterFunc(batchWindow, func() { l.queryStore(ctx, g) })
	}
	g := l.next
	g.sessions[session] = struct{}{}
	if len(g.sessions) == maxBatch {
		l.next = nil
	}
	return g
}

// queryStore runs the query.
func (l *batchedLookup) queryStore(ctx context.Context, g *lookup) {
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
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	if g.newest, g.err = l.store.LastOf(ctx, sessions); g.err != nil {
		g.err = fmt.Errorf("newest events of %d sessions: %w", len(sessions), g.err)
	}
}
