package coretest

import (
	"context"
	"slices"
	"sync"

	"bobbin/app/core"
)

// Feed is an event feed that remembers what it gets. The zero value is ready.
type Feed struct {
	mu     sync.Mutex
	events []core.Event // guarded by mu
}

// Publish keeps durable events.
func (f *Feed) Publish(_ context.Context, events []core.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, events...)
}

// Delta keeps a passing event.
func (f *Feed) Delta(ctx context.Context, e core.Event) { f.Publish(ctx, []core.Event{e}) }

// All returns the events of the types in order; without types all of them.
func (f *Feed) All(types ...core.EventType) []core.Event {
	return f.find(func(e core.Event) bool { return len(types) == 0 || slices.Contains(types, e.Type) })
}

// Published returns the durable events.
func (f *Feed) Published() []core.Event {
	return f.find(func(e core.Event) bool { return e.Seq > 0 })
}

// Passing returns the passing events.
func (f *Feed) Passing() []core.Event {
	return f.find(func(e core.Event) bool { return e.Seq == 0 })
}

func (f *Feed) find(match func(core.Event) bool) (out []core.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.events {
		if match(e) {
			out = append(out, e)
		}
	}
	return out
}

// Types returns the types of the events.
func Types(events []core.Event) []core.EventType {
	out := make([]core.EventType, 0, len(events))
	for _, e := range events {
		out = append(out, e.Type)
	}
	return out
}

// Data returns the data of an event, which must be a T.
func Data[T any](e core.Event) T { return e.Data.(T) }
