package events

import (
	"context"
	"fmt"
	"sync"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/quota"
)

// catchUp emits the durable events after w.lastSeq from the store, then the partial texts. If
// the store has a gap, or does not have the event atLeast, a resync replaces what is missing.
func (w *watcher) catchUp(ctx context.Context, atLeast int64) error {
	for {
		whole, more, err := w.replayPage(ctx, atLeast)
		switch {
		case err != nil:
			return err
		case whole && more:
			continue
		case !whole || w.lastSeq < atLeast:
			return w.resync(ctx)
		default:
			return w.emitSnapshot(ctx)
		}
	}
}

// replayPage emits the next page of events from the store. It reports whether they have no gap,
// and whether there may be more.
func (w *watcher) replayPage(ctx context.Context, atLeast int64) (whole, more bool, err error) {
	hold := w.feed.memory.Hold(w.scope)
	defer hold.Release()
	if w.lastSeq < atLeast {
		err := hold.Resize(ctx, core.MaxPageBytes)
		if err != nil && ctx.Err() == nil { // other replays use up the memory
			err = &core.Error{Kind: core.ErrUnavailable, Code: quota.CodeExceeded, RetryAfter: time.Second, Err: err,
				Message: "too many events are being replayed to slow readers; reconnect in a moment with the last event id"}
		}
		if err != nil {
			return false, false, err
		}
	}
	query, cancel := context.WithTimeout(ctx, storeTime)
	page, more, err := w.feed.store.Page(query, w.session, w.lastSeq, pageSize)
	cancel()
	if err != nil {
		return false, false, fmt.Errorf("events of session %s after %d: %w", w.session, w.lastSeq, err)
	}
	bytes := 0
	for _, e := range page {
		bytes += e.Size
	}
	hold.Keep(int64(bytes))
	whole, err = w.emitPage(page)
	return whole, more, err
}

// replayMissed is catchUp for events that the bus did not deliver.
func (w *watcher) replayMissed(ctx context.Context, atLeast int64) error {
	before := w.lastSeq
	err := w.catchUp(ctx, atLeast)
	w.feed.observer.Count(core.CountEventsFound, int(max(w.lastSeq-before, 0)))
	return err
}

// emitPage emits the events, and reports false at a gap in their numbers.
func (w *watcher) emitPage(page []core.Event) (bool, error) {
	for _, e := range page {
		if e.Seq != w.lastSeq+1 {
			return false, nil
		}
		if err := w.emitEvent(e); err != nil {
			return false, err
		}
	}
	return true, nil
}

// newestEvent returns the number of the session's newest event.
func (w *watcher) newestEvent(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	newest, err := w.feed.store.Last(ctx, w.scope, w.session)
	if err != nil {
		return 0, fmt.Errorf("newest event of session %s: %w", w.session, err)
	}
	return newest, nil
}

// resync continues at the newest event, since earlier ones are no longer kept.
func (w *watcher) resync(ctx context.Context) error {
	newest, err := w.newestEvent(ctx)
	if err != nil {
		return err
	}
	if err := w.emitResync(newest); err != nil {
		return err
	}
	if err := w.emitSnapshot(ctx); err != nil {
		return err
	}
	return w.requestSnapshot(ctx)
}

// emitResync tells the reader to reload the messages, and continues after newest.
func (w *watcher) emitResync(newest int64) error {
	w.pending = nil
	w.joined.Reset()
	w.feed.observer.Count(core.CountResyncs, 1)
	e := core.NewEvent(w.session, "", core.EventResync, nil)
	e.Seq = newest // otherwise the reader would reconnect with a number that is invalid here
	if err := w.emitEvent(e); err != nil {
		return err
	}
	w.lastSeq = newest
	clear(w.delivered)
	return nil
}

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
