package events

import (
	"sync"

	"bobbin/app/core"
)

// Why a subscription ends by itself. Both may be shown to the reader.
var (
	// ErrSlow: the reader did not keep up and was dropped. It comes back with the
	// last event number that it has, and misses nothing.
	ErrSlow error = &core.Error{Kind: core.ErrUnavailable, Code: core.CodeSlowReader,
		Message: "the events came faster than they were read; connect again with the last event id"}
	// ErrClosed: the bus is closed, because the process stops.
	ErrClosed error = &core.Error{Kind: core.ErrUnavailable, Code: "stopping",
		Message: "the server is stopping; connect again with the last event id"}
)

// Bus carries bytes from publishers to whoever listens at that moment. It may
// lose messages and may mix up those of different publishers: a Feed does not
// depend on it. Implementations are safe for concurrent use.
type Bus interface {
	// Publish hands data to the present subscribers of the subject and does not
	// wait for them. Data must not be changed afterwards.
	Publish(subject string, data []byte) error
	// Subscribe begins to listen. The caller closes the subscription.
	Subscribe(subject string) (Subscription, error)
}

// Subscription is one listener of a subject. One goroutine at a time takes from it.
type Subscription interface {
	// Ready has an element, or is closed, when Take has something to say. It may have
	// one without a reason.
	Ready() <-chan struct{}
	// Take returns the oldest message that was not taken; an empty one says that some
	// may have been lost. It returns nil when there is none at present, and when all is
	// taken and the subscription has ended, why: ErrSlow, or ErrClosed.
	Take() (*Message, error)
	// Waiting reports whether there is a message to be taken.
	Waiting() bool
	// Close ends the subscription. It may be called more than once.
	Close()
}

// Message is what was published, once for all subscribers of this process: what one of
// them makes of it the others need not make again. Safe for concurrent use.
type Message struct {
	data []byte

	once  sync.Once
	event core.Event
	whole bool // the event has its data
	err   error
	delta core.DeltaData // of a piece of text
}

// Data returns the bytes that were published; they must not be changed.
func (m *Message) Data() []byte { return m.data }

// decode returns the event that the message is, false if it is without its data.
func (m *Message) decode() (core.Event, bool, error) {
	m.once.Do(func() {
		m.event, m.whole, m.err = decode(m.data)
		if m.err == nil && isText(m.event.Type) {
			m.delta, m.err = deltaOf(m.event)
		}
	})
	return m.event, m.whole, m.err
}
