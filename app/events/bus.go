package events

import "bobbin/app/core"

// Why a subscription ends by itself. Both may be shown to the reader.
var (
	// ErrSlow: the reader did not keep up and was dropped. It comes back with the
	// last event number that it has, and misses nothing.
	ErrSlow error = &core.Error{Kind: core.ErrUnavailable, Code: "slow_reader",
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

// Subscription is one listener of a subject.
type Subscription interface {
	// C delivers what is published; an empty message says that some may have been
	// lost. It is closed when the subscription has ended,
	// by Close or by the bus; what came before can still be read.
	C() <-chan []byte
	// Err says why C was closed: ErrSlow or ErrClosed; nil while it is open and
	// after Close.
	Err() error
	// Close ends the subscription. It may be called more than once.
	Close()
}
