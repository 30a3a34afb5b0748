package events

import (
	"maps"
	"slices"
	"sync"
)

// defaultBuffer is how many messages a subscriber of Local may be behind. A
// burst of a fast model is some hundred deltas.
const defaultBuffer = 1024

// Local is a Bus within one process. It delivers in the order of publishing,
// and drops a subscriber whose buffer is full. Safe for concurrent use.
type Local struct {
	buffer int

	mu     sync.Mutex
	closed bool                                       // guarded by mu
	subs   map[string]map[*localSubscription]struct{} // guarded by mu
}

// NewLocal returns a bus whose subscribers may be buffer messages behind;
// 0 = 1,024.
func NewLocal(buffer int) *Local {
	if buffer <= 0 {
		buffer = defaultBuffer
	}
	return &Local{buffer: buffer, subs: map[string]map[*localSubscription]struct{}{}}
}

// Publish hands data to the subscribers of the subject. A subscriber whose
// buffer is full is dropped with ErrSlow. It returns ErrClosed after Close.
func (l *Local) Publish(subject string, data []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosed
	}
	for s := range l.subs[subject] {
		select {
		case s.c <- data:
		default:
			l.end(s, ErrSlow)
		}
	}
	return nil
}

// Subscribe begins to listen. It returns ErrClosed after Close.
func (l *Local) Subscribe(subject string) (Subscription, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, ErrClosed
	}
	s := &localSubscription{bus: l, subject: subject, c: make(chan []byte, l.buffer)}
	if l.subs[subject] == nil {
		l.subs[subject] = map[*localSubscription]struct{}{}
	}
	l.subs[subject][s] = struct{}{}
	return s, nil
}

// interrupt tells all subscribers by an empty message that some may have been lost.
func (l *Local) interrupt() {
	l.mu.Lock()
	subjects := slices.Collect(maps.Keys(l.subs))
	l.mu.Unlock()
	for _, subject := range subjects {
		_ = l.Publish(subject, nil) // it fails only after Close
	}
}

// Close ends all subscriptions with ErrClosed, so that readers do not hold up
// the stop of a server. It may be called more than once.
func (l *Local) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, subs := range l.subs {
		for s := range subs {
			l.end(s, ErrClosed)
		}
	}
}

// Subscribers counts the open subscriptions of all subjects.
func (l *Local) Subscribers() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, subs := range l.subs {
		n += len(subs)
	}
	return n
}

// end takes the subscription out. The caller holds l.mu, under which alone
// anything is sent: so closing the channel here cannot meet a sender.
func (l *Local) end(s *localSubscription, why error) {
	subs := l.subs[s.subject]
	if _, open := subs[s]; !open {
		return
	}
	delete(subs, s)
	if len(subs) == 0 {
		delete(l.subs, s.subject)
	}
	s.err = why
	close(s.c)
}

// localSubscription is a listener of a Local bus.
type localSubscription struct {
	bus     *Local
	subject string
	c       chan []byte
	err     error // guarded by bus.mu
}

func (s *localSubscription) C() <-chan []byte { return s.c }

func (s *localSubscription) Err() error {
	s.bus.mu.Lock()
	defer s.bus.mu.Unlock()
	return s.err
}

func (s *localSubscription) Close() {
	s.bus.mu.Lock()
	defer s.bus.mu.Unlock()
	s.bus.end(s, nil)
}
