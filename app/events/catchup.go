package events

import (
	"context"
	"fmt"

	"bobbin/app/core"
)

// How a watcher gets what the store has.

// catchUp gives the durable events after w.seen from the store, and the text so
// far. If the store has a hole, or does not have the event atLeast, a resync
// stands for what is missing.
func (w *watcher) catchUp(ctx context.Context, atLeast int64) error {
	for {
		page, err := w.feed.store.After(ctx, w.session, w.seen, pageSize)
		if err != nil {
			return fmt.Errorf("events of session %s after %d: %w", w.session, w.seen, err)
		}
		whole, err := w.emitPage(page)
		if err != nil {
			return err
		}
		if whole && len(page) == pageSize {
			continue
		}
		if !whole || w.seen < atLeast {
			return w.skip(ctx)
		}
		return w.snapshot(ctx)
	}
}

// find is catchUp for what the bus did not bring.
func (w *watcher) find(ctx context.Context, atLeast int64) error {
	before := w.seen
	err := w.catchUp(ctx, atLeast)
	w.feed.observer.EventsFound(int(max(w.seen-before, 0)))
	return err
}

// emitPage gives the events, and reports false at a hole in their numbers.
func (w *watcher) emitPage(page []core.Event) (bool, error) {
	for _, e := range page {
		if e.Seq != w.seen+1 {
			return false, nil
		}
		if err := w.emit(e); err != nil {
			return false, err
		}
	}
	return true, nil
}

// skip goes on at the newest event, as those before it are not kept.
func (w *watcher) skip(ctx context.Context) error {
	newest, err := w.feed.store.Last(ctx, w.scope, w.session)
	if err != nil {
		return fmt.Errorf("newest event of session %s: %w", w.session, err)
	}
	if err := w.resync(newest); err != nil {
		return err
	}
	if err := w.snapshot(ctx); err != nil {
		return err
	}
	return w.join(ctx)
}

// resync tells the reader to load the messages, and goes on after newest.
func (w *watcher) resync(newest int64) error {
	w.pending = nil
	w.feed.observer.Resync()
	e := core.NewEvent(w.session, "", core.EventResync, struct{}{})
	e.Seq = newest // else the reader would come back with a number that means nothing here
	if err := w.emit(e); err != nil {
		return err
	}
	w.seen = newest
	clear(w.given)
	return nil
}
