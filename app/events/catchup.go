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

// emitNode tells the reader once which node the run executes.
func (w *watcher) emitNode(e core.Event) error {
	if w.closed.has(string(e.RunID)) || e.RunID == w.lastNode.RunID && e.At.Equal(w.lastNode.At) && nodeOf(e) == nodeOf(w.lastNode) {
		return nil
	}
	w.lastNode = e
	return w.emitEvent(e)
}

// emitEvent delivers the event to the reader, after the text that came before it.
func (w *watcher) emitEvent(e core.Event) error {
	if err := w.flushPending(); err != nil {
		return err
	}
	if e.Seq > 0 {
		w.lastSeq = e.Seq
	}
	if message := e.FinishedMessage(); message != "" {
		w.closeTexts(string(message), func(k textKey, _ deliveredText) bool { return k.message == message })
	}
	if e.Type.EndsRun() {
		w.closeTexts(string(e.RunID), func(_ textKey, g deliveredText) bool { return g.run == e.RunID })
	}
	if !w.yield(e) {
		return errReaderLeft
	}
	return nil
}

// closeTexts forgets the texts that match, and drops further ones with the id.
func (w *watcher) closeTexts(id string, match func(textKey, deliveredText) bool) {
	if id != "" && !w.closed.has(id) {
		if w.closed.ids == nil || len(w.closed.ids) == recentSize {
			w.closed.ids, w.closed.older = map[string]struct{}{}, w.closed.ids
		}
		w.closed.ids[id] = struct{}{}
	}
	for k, g := range w.delivered {
		if match(k, g) {
			delete(w.delivered, k)
		}
	}
}

// emitSnapshot delivers what the reader lacks of the node and the texts of a run that this process
// executes.
func (w *watcher) emitSnapshot(ctx context.Context) error {
	for _, e := range w.feed.live.snapshot(w.session) {
		var err error
		if e.Type.IsText() {
			err = w.deliverDelta(ctx, deltaOf(e))
		} else {
			err = w.emitNode(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// deliverDelta delivers the part of the delta that the reader lacks. It drops text of a
// finished message or a lost attempt, and text that leaves an unfillable gap: message.created
// will bring the whole message.
func (w *watcher) deliverDelta(ctx context.Context, d delta) error {
	if w.closed.has(string(d.data.MessageID)) || w.closed.has(string(d.event.RunID)) {
		return nil
	}
	if w.lastWriter.run == d.event.RunID && d.data.Attempt < w.lastWriter.number {
		return nil
	}
	key := keyOf(d)
	have, end := w.delivered[key].bytes, d.data.Offset+len(d.data.Text)
	if d.data.Offset > have || end <= have {
		return nil
	}
	if holds, err := w.ownsRun(ctx, d); err != nil || !holds {
		return err
	}
	d.intact = d.intact && d.data.Offset == have
	d.data = d.data.From(have)
	w.delivered[key] = deliveredText{run: d.event.RunID, bytes: end}
	w.lastWriter = attempt{run: d.event.RunID, number: d.data.Attempt}
	if w.pending != nil && keyOf(*w.pending) == key {
		if w.pending.intact = false; w.joined.Len() == 0 {
			w.joined.WriteString(w.pending.data.Text)
		}
		w.joined.WriteString(d.data.Text)
		return nil
	}
	if err := w.flushPending(); err != nil {
		return err
	}
	if w.startedMessage != d.data.MessageID {
		w.startedMessage = d.data.MessageID
		e := core.NewEvent(w.session, d.event.RunID, core.EventMessageStarted, core.StartedData{
			MessageID: d.data.MessageID, Role: core.RoleAssistant, ParentID: d.data.ParentID, Attempt: d.data.Attempt,
		})
		e.At = d.event.At
		if !w.yield(e) {
			return errReaderLeft
		}
	}
	first := d // the parameter stays on the stack: most pieces are joined with an earlier one
	w.pending = &first
	return nil
}

// deltaOf returns the piece of text that the event brings.
func deltaOf(e core.Event) delta {
	data, _ := e.Data.(core.DeltaData)
	return delta{event: e, data: data, intact: true}
}

// nodeOf returns the data of a node.started.
func nodeOf(e core.Event) core.NodeData {
	data, _ := e.Data.(core.NodeData)
	return data
}

func keyOf(d delta) textKey {
	return textKey{kind: d.event.Type, message: d.data.MessageID, call: d.data.CallID()}
}

// flushPending delivers the pending text to the reader.
func (w *watcher) flushPending() error {
	if w.pending == nil {
		return nil
	}
	d := w.pending
	w.pending = nil
	if w.joined.Len() > 0 {
		d.data.Text = w.joined.String()
		w.joined.Reset()
	}
	e := d.event
	if !d.intact {
		e = e.WithData(d.data)
	}
	if !w.yield(e) {
		return errReaderLeft
	}
	return nil
}

// recentSize is how many ids recent keeps at least. When a message is known to be finished, at most
// defaultBuffer of its deltas can still arrive.
const recentSize = defaultBuffer

// recent is a bounded set that keeps the newest ids. The zero value is empty and ready to use.
type recent struct {
	ids, older map[string]struct{}
}

func (r *recent) has(id string) bool {
	_, isNew := r.ids[id]
	_, isOlder := r.older[id]
	return isNew || isOlder
}
