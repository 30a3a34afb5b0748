package events

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"bobbin/app/core"
)

// How a feed of heads collects changes.
const (
	headDelay   = 200 * time.Millisecond // a change waits so long for others
	maxHeads    = 500                    // sessions that change at a time; with more the reader loads its list anew
	maxChanges  = 10_000                 // of all sessions, after which a reader can resume
	resyncEvery = 5 * time.Minute        // of readers that other processes' changes may not reach
)

// headSubject is the subject of changed sessions of an owner, or of one of the owner's users.
func headSubject(tenant core.Tenant) string {
	sum := sha256.Sum256([]byte(tenant.Owner + "\x00" + tenant.User)) // names may hold anything
	return "heads." + hex.EncodeToString(sum[:16])
}

// headChanges are the newest changes of sessions in this process. Safe for concurrent use.
type headChanges struct {
	mu     sync.Mutex
	last   int64        // number of the newest; begins anywhere, so that no other process has the same; 0 = not numbered; guarded by mu
	newest []headChange // at most maxChanges, oldest first; guarded by mu
}

type headChange struct {
	tenant  core.Tenant
	session core.SessionID
}

// since returns the sessions in the scope that changed after the number, and the number of the newest change.
// known is false for a number that is too old, or of another process.
func (h *headChanges) since(scope core.Tenant, number int64) (sessions map[core.SessionID]struct{}, last int64, known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	sessions = map[core.SessionID]struct{}{}
	missed := h.last - number
	if number <= 0 || missed < 0 || missed > int64(len(h.newest)) {
		return sessions, h.last, false
	}
	for _, c := range h.newest[len(h.newest)-int(missed):] {
		if c.tenant.Owner == scope.Owner && (scope.User == "" || c.tenant.User == scope.User) {
			sessions[c.session] = struct{}{}
		}
	}
	return sessions, h.last, true
}

// PublishHead lets the watchers of heads know that a session has changed. Publish does it for
// sessions with events.
func (f *Feed) PublishHead(ctx context.Context, tenant core.Tenant, session core.SessionID) {
	f.heads.mu.Lock() // what is numbered is published: no reader is between the two
	defer f.heads.mu.Unlock()
	if f.heads.last > 0 {
		f.heads.last++
		f.heads.newest = append(f.heads.newest, headChange{tenant, session})
		f.heads.newest = f.heads.newest[max(0, len(f.heads.newest)-maxChanges):]
	}
	scopes := []core.Tenant{{Owner: tenant.Owner}, tenant}
	for _, scope := range slices.Compact(scopes) {
		if scope.Owner == "" {
			return
		}
		if err := f.bus.Publish(headSubject(scope), []byte(session)); err != nil && !errors.Is(err, ErrClosed) {
			f.log.WarnContext(ctx, "change of a session not published", "session_id", session, "err", err)
		}
	}
}

// WatchHeads yields a resync, then the heads of the sessions in the scope whenever they change:
// a reader that loads its list of sessions at each resync, and replaces what the heads bring,
// misses nothing. Another resync says that changes may be lost. Changes of a session within a
// short time are one head, the newest. Temporary sessions are left out. It ends as Watch does.
//
// A reader that names the last number it got gets the heads of what has changed since instead of the resync,
// if this process knows them. Between processes there are no numbers.
func (f *Feed) WatchHeads(ctx context.Context, tenant core.Tenant, after int64) iter.Seq2[core.Event, error] {
	return func(yield func(core.Event, error) bool) {
		w := &headWatcher{feed: f, scope: tenant, yield: func(e core.Event) bool { return yield(e, nil) }}
		left := f.observer.Watching()
		err := w.run(ctx, after)
		left(err)
		if !errors.Is(err, errReaderLeft) {
			yield(core.Event{}, err)
		}
	}
}

// headWatcher is the state of one WatchHeads.
type headWatcher struct {
	feed    *Feed
	scope   core.Tenant
	yield   func(core.Event) bool
	changed map[core.SessionID]struct{} // not sent yet
	due     <-chan time.Time            // when they are; nil = there are none
	sent    map[core.SessionID]int64    // LastEvent of heads that the reader has; not of all
	number  int64                       // the last that the reader has
}

// run watches until an error ends it; it never returns nil.
func (w *headWatcher) run(ctx context.Context, after int64) error {
	sub, err := w.feed.bus.Subscribe(headSubject(w.scope))
	if err != nil {
		return fmt.Errorf("watch heads: %w", err)
	}
	defer sub.Close()
	var resyncs <-chan time.Time
	if w.feed.runs != nil { // messages of other processes may be lost without a sign
		_ = core.Sleep(ctx, answerTime) // they hear of this watcher some time after it began
		tick := time.NewTicker(resyncEvery)
		defer tick.Stop()
		resyncs = tick.C
	}
	var known bool
	w.due, w.sent, w.number = time.After(0), map[core.SessionID]int64{}, after
	if w.changed, _, known = w.feed.heads.since(w.scope, after); !known || len(w.changed) > maxHeads {
		err = w.resync()
	}
	for err == nil {
		select {
		case <-sub.Ready():
			_, err = w.takeMessage(sub)
		case <-w.due:
			err = w.emitChanged(ctx, sub)
		case <-resyncs:
			err = w.resync()
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	return err
}

// resync makes the reader load its list anew.
func (w *headWatcher) resync() error {
	w.changed, w.due, w.sent = map[core.SessionID]struct{}{}, nil, map[core.SessionID]int64{}
	_, w.number, _ = w.feed.heads.since(w.scope, 0)
	e := core.NewEvent("", "", core.EventResync, nil)
	e.Seq = w.number
	return w.emitEvent(e)
}

func (w *headWatcher) emitEvent(e core.Event) error {
	if !w.yield(e) {
		return errReaderLeft
	}
	return nil
}

// takeMessage handles a message of the bus, if there is one.
func (w *headWatcher) takeMessage(sub Subscription) (taken bool, err error) {
	message, err := sub.Take()
	if err != nil || message == nil {
		return false, err
	}
	if message.signalsLoss() {
		return true, w.resync()
	}
	w.changed[core.SessionID(message.Data())] = struct{}{}
	if len(w.changed) > maxHeads {
		return true, w.resync()
	}
	if w.due == nil {
		w.due = time.After(headDelay)
	}
	return true, nil
}

// emitChanged emits the heads of the sessions that have changed. The last one has the number of the newest change.
func (w *headWatcher) emitChanged(ctx context.Context, sub Subscription) error {
	_, number, _ := w.feed.heads.since(w.scope, 0)
	for taken := true; taken; { // all messages up to the number
		var err error
		if taken, err = w.takeMessage(sub); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	removed := w.changed
	heads, err := w.feed.store.Heads(ctx, w.scope, slices.Sorted(maps.Keys(removed)))
	if err != nil {
		return fmt.Errorf("heads of changed sessions: %w", err)
	}
	w.changed, w.due = map[core.SessionID]struct{}{}, nil
	if len(w.sent) > maxHeads {
		w.sent = map[core.SessionID]int64{}
	}
	var events []core.Event
	for _, head := range heads {
		delete(removed, head.ID)
		known, ok := w.sent[head.ID]
		if w.sent[head.ID] = head.LastEvent; !head.Temporary && (!ok || known != head.LastEvent) {
			events = append(events, core.NewEvent(head.ID, "", core.EventSessionHead, head))
		}
	}
	for session := range removed {
		events = append(events, core.NewEvent(session, "", core.EventSessionHead, core.RemovedHead{Deleted: true}))
	}
	for i, e := range events {
		if i == len(events)-1 && number > w.number {
			e.Seq, w.number = number, number
		}
		if err := w.emitEvent(e); err != nil {
			return err
		}
	}
	return nil
}
