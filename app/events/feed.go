package events

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/quota"
)

// How a Feed reads the store.
const (
	pageSize    = 200
	defaultPoll = 15 * time.Second
	// storeTime bounds one query. A reader in a process that cannot reach the store should reconnect to
	// another one.
	storeTime = 10 * time.Second
)

// Feed publishes the events of sessions and lets readers watch them. Safe for concurrent use.
type Feed struct {
	bus     Bus
	store   core.EventStore
	log     *slog.Logger
	poll    time.Duration
	lookups *batchedLookup
	live    *liveSessions
	runs    core.RunStore // nil = there are no other processes

	memory *quota.Quota // of replayed events; nil = no limit

	observer  core.Observer
	listeners []listener
}

// Observe sets the observer. Call it before the feed is used.
func (f *Feed) Observe(o core.Observer) { f.observer = o }

// Limit sets the quota for the memory of replays. Call it before the feed is used.
func (f *Feed) Limit(memory *quota.Quota) { f.memory = memory }

// New returns a feed over the bus whose durable events are in store. Every watcher checks the
// store every 15 s for events that the bus may have lost.
func New(bus Bus, store core.EventStore, logger *slog.Logger) *Feed {
	return &Feed{bus: bus, store: store, log: logger, poll: defaultPoll, lookups: &batchedLookup{store: store}, live: &liveSessions{sessions: map[core.SessionID]*liveSession{}}, observer: core.NoObserver{}}
}

// Publish publishes durable events to the watchers. Call it after the commit that wrote them;
// the order among callers does not matter. It does not fail: watchers read from the store what
// the bus loses.
func (f *Feed) Publish(ctx context.Context, events []core.Event) {
	for _, e := range events {
		f.live.applyEvent(e)
		f.publishTo(ctx, sessionSubject(e.SessionID), e)
		for _, l := range f.listeners {
			if l.wants(e) {
				core.Signal(l.c)
			}
		}
	}
	for i, e := range events {
		if i == 0 || e.SessionID != events[i-1].SessionID {
			f.PublishHead(ctx, core.Tenant(e.Owner), e.SessionID)
		}
	}
}

// Delta publishes an event that is not stored. A message.delta or reasoning.delta extends the
// partial text of its message, if its attempt has begun (Begin), and a message.discarded removes it.
// The deltas of a message must come from one goroutine in the order of their offsets, and be valid
// UTF-8. A delta of an attempt older than the one that has begun is dropped.
func (f *Feed) Delta(ctx context.Context, e core.Event) {
	e.Seq = 0
	if !e.Type.IsText() {
		f.live.applyEvent(e)
		f.publishTo(ctx, sessionSubject(e.SessionID), e)
		return
	}
	d, ok := e.Data.(core.DeltaData)
	if !ok {
		f.log.ErrorContext(ctx, "delta not readable", "session_id", e.SessionID, "err", fmt.Sprintf("its data are %T", e.Data))
		return
	}
	// Before it is published: a watcher that subscribed too late for the bus must find it
	// here. A watcher that gets it from both removes the overlap.
	if !f.live.appendDelta(e, d) {
		return
	}
	if f.runs != nil && len(d.Text) > pieceSize {
		f.sendText(ctx, sessionSubject(e.SessionID), e)
		return
	}
	f.publishTo(ctx, sessionSubject(e.SessionID), e)
}

// publishTo publishes the event on a subject of the bus.
func (f *Feed) publishTo(ctx context.Context, subject string, e core.Event) {
	if err := f.bus.PublishEvent(subject, e); err != nil && !errors.Is(err, ErrClosed) {
		f.log.WarnContext(ctx, "event not published", "session_id", e.SessionID, "type", e.Type, "err", err)
	}
}

// listener is a channel that is signaled when a wanted event is published.
type listener struct {
	wants func(core.Event) bool
	c     chan<- struct{}
}

// Notify puts an element into c, unless it is full, whenever this process publishes a durable
// event that is wanted. Events of other processes do not count. Call it before the feed is
// used.
func (f *Feed) Notify(c chan<- struct{}, wants func(core.Event) bool) {
	f.listeners = append(f.listeners, listener{wants: wants, c: c})
}
