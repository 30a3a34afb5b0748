package events

import "bobbin/app/core"

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
