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
	"time"

	"bobbin/app/core"
)

// How a feed of heads collects changes.
const (
	headDelay   = 200 * time.Millisecond // a change waits so long for others
	maxHeads    = 500                    // sessions that change at a time; with more the reader loads its list anew
	resyncEvery = 5 * time.Minute        // of readers that other processes' changes may not reach
)

// headSubject is the subject of changed sessions of an owner, or of one of the owner's users.
func headSubject(tenant core.Tenant) string {
	sum := sha256.Sum256([]byte(tenant.Owner + "\x00" + tenant.User)) // names may hold anything
	return "heads." + hex.EncodeToString(sum[:16])
}

// PublishHead lets the watchers of heads know that a session has changed. Publish does it for
// sessions with events.
func (f *Feed) PublishHead(ctx context.Context, tenant core.Tenant, session core.SessionID) {
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
func (f *Feed) WatchHeads(ctx context.Context, tenant core.Tenant) iter.Seq2[core.Event, error] {
	return func(yield func(core.Event, error) bool) {
		w := &headWatcher{feed: f, scope: tenant, yield: func(e core.Event) bool { return yield(e, nil) }}
		left := f.observer.Watching()
		err := w.run(ctx)
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
}

// run watches until an error ends it; it never returns nil.
func (w *headWatcher) run(ctx context.Context) error {
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
	err = w.resync()
	for err == nil {
		select {
		case <-sub.Ready():
			err = w.takeMessage(sub)
		case <-w.due:
			err = w.emitChanged(ctx)
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
	return w.emitEvent(core.NewEvent("", "", core.EventResync, nil))
}

func (w *headWatcher) emitEvent(e core.Event) error {
	if !w.yield(e) {
		return errReaderLeft
	}
	return nil
}

// takeMessage handles a message of the bus, if there is one.
func (w *headWatcher) takeMessage(sub *Subscription) error {
	message, err := sub.Take()
	if err != nil || message == nil {
		return err
	}
	if message.signalsLoss() {
		return w.resync()
	}
	w.changed[core.SessionID(message.Data())] = struct{}{}
	if len(w.changed) > maxHeads {
		return w.resync()
	}
	if w.due == nil {
		w.due = time.After(headDelay)
	}
	return nil
}

// emitChanged emits the heads of the sessions that have changed.
func (w *headWatcher) emitChanged(ctx context.Context) error {
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
	for _, head := range heads {
		delete(removed, head.ID)
		known, ok := w.sent[head.ID]
		if w.sent[head.ID] = head.LastEvent; head.Temporary || ok && known == head.LastEvent {
			continue
		}
		if err := w.emitEvent(core.NewEvent(head.ID, "", core.EventSessionHead, head)); err != nil {
			return err
		}
	}
	for session := range removed {
		if err := w.emitEvent(core.NewEvent(session, "", core.EventSessionHead, core.RemovedHead{Deleted: true})); err != nil {
			return err
		}
	}
	return nil
}
