package events

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"bobbin/app/core"
)

// How a Feed reads the store.
const (
	pageSize    = 200
	defaultPoll = 15 * time.Second
)

// eventStore is what a Feed needs of storage.
type eventStore interface {
	// After returns up to limit events with a greater number, in order.
	After(ctx context.Context, session core.SessionID, after int64, limit int) ([]core.Event, error)
	// Last returns the number of the session's newest event; 0 = none yet.
	Last(ctx context.Context, scope core.Scope, session core.SessionID) (int64, error)
}

// Feed publishes the events of sessions and lets readers watch them. Safe for
// concurrent use.
type Feed struct {
	bus   Bus
	store eventStore
	log   *slog.Logger
	poll  time.Duration
	texts *texts
}

// New returns a feed over the bus whose durable events are in store. Every
// watcher asks the store each 15 s for what the bus may have lost.
func New(bus Bus, store eventStore, logger *slog.Logger) *Feed {
	return &Feed{bus: bus, store: store, log: logger, poll: defaultPoll, texts: newTexts()}
}

// Publish tells the watchers of durable events. Call it after the commit that
// wrote them; the order among callers does not matter. It does not fail: what
// the bus loses, watchers read from the store.
func (f *Feed) Publish(ctx context.Context, events []core.Event) {
	for _, e := range events {
		f.texts.finish(e)
		f.send(ctx, e)
	}
}

// Delta tells the watchers of a passing event. A message.delta or
// reasoning.delta is added to the text so far of its message, and a
// message.discarded takes that back; those of one message are to come from one
// goroutine in the order of their offsets, and be valid UTF-8. One of an attempt
// older than a known one is dropped.
func (f *Feed) Delta(ctx context.Context, e core.Event) {
	e.Seq = 0
	if !isText(e.Type) {
		f.texts.finish(e)
		f.send(ctx, e)
		return
	}
	var d core.DeltaData
	if err := json.Unmarshal(e.Data, &d); err != nil {
		f.log.ErrorContext(ctx, "delta not readable", "session_id", e.SessionID, "err", err)
		return
	}
	// Before it goes out: whoever subscribed too late for the bus must find it
	// here. Who gets it from both cuts off the overlap.
	if f.texts.add(e, d) {
		f.send(ctx, e)
	}
}

// send puts the event on the bus.
func (f *Feed) send(ctx context.Context, e core.Event) {
	raw, err := encode(e)
	if err == nil {
		err = f.bus.Publish(subject(e.SessionID), raw)
	}
	if err != nil && !errors.Is(err, ErrClosed) {
		f.log.WarnContext(ctx, "event not published", "session_id", e.SessionID, "type", e.Type, "err", err)
	}
}
