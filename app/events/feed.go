package events

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
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
	// LastOf is Last of several sessions, whosever they are, without those that do not
	// exist.
	LastOf(ctx context.Context, sessions []core.SessionID) (map[core.SessionID]int64, error)
}

// Feed publishes the events of sessions and lets readers watch them. Safe for
// concurrent use.
type Feed struct {
	bus   Bus
	store eventStore
	log   *slog.Logger
	poll  time.Duration
	looks *lookout
	texts *texts
	runs  runStore // nil = this process is by itself

	observer observer
}

// observer is told how events get to watchers (telemetry). It must not wait for anything.
type observer interface {
	// FanOut is told how long after an event happened a watcher heard of it, by the
	// clocks of both processes.
	FanOut(late time.Duration)
	// Watching is told of a watcher that begins; left is called once, with why it ended.
	Watching() (left func(err error))
	// Resync is told that a watcher could not be given what it asked for.
	Resync()
	// EventsFound is told how many durable events a watcher read from the store because the
	// bus had not brought them.
	EventsFound(events int)
}

// silent is the observer of a Feed that has none.
type silent struct{}

func (silent) FanOut(time.Duration)  {}
func (silent) Watching() func(error) { return func(error) {} }
func (silent) Resync()               {}
func (silent) EventsFound(int)       {}

// Observe tells the observer from now on. Call it before the feed is used.
func (f *Feed) Observe(o observer) { f.observer = o }

// New returns a feed over the bus whose durable events are in store. Every
// watcher asks the store each 15 s for what the bus may have lost.
func New(bus Bus, store eventStore, logger *slog.Logger) *Feed {
	timed := timedStore{store}
	return &Feed{bus: bus, store: timed, log: logger, poll: defaultPoll, looks: &lookout{store: timed}, texts: newTexts(), observer: silent{}}
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
	if !f.texts.add(e, d) {
		return
	}
	if f.runs != nil && len(d.Text) > pieceSize {
		f.sendText(ctx, subject(e.SessionID), e, d)
		return
	}
	f.send(ctx, e)
}

// send puts the event on the bus for the watchers of its session.
func (f *Feed) send(ctx context.Context, e core.Event) { f.put(ctx, subject(e.SessionID), e) }

// put puts the event on the bus.
func (f *Feed) put(ctx context.Context, subject string, e core.Event) {
	limit := math.MaxInt
	if f.runs != nil {
		limit = maxWire
	}
	raw, err := encode(e, limit)
	if err == nil {
		err = f.bus.Publish(subject, raw)
	}
	if err != nil && !errors.Is(err, ErrClosed) {
		f.log.WarnContext(ctx, "event not published", "session_id", e.SessionID, "type", e.Type, "err", err)
	}
}
