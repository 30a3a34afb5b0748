package events

import (
	"maps"
	"slices"
	"sync"

	"bobbin/app/core"
)

// How far a subscriber of Local may be behind.
const (
	defaultBuffer = 1024    // messages; a burst of a fast model is a few hundred deltas
	maxBehind     = 8 << 20 // bytes; one message is always allowed
)

// Local is a Bus within one process. It delivers in the order of publishing, and drops a
// subscriber whose buffer is full. Safe for concurrent use.
type Local struct {
	buffer int

	mu     sync.Mutex
	closed bool                                       // guarded by mu
	subs   map[string]map[*localSubscription]struct{} // guarded by mu
}

// NewLocal returns a bus whose subscribers may be buffer messages behind; 0 = 1,024.
func NewLocal(buffer int) *Local {
	if buffer <= 0 {
		buffer = defaultBuffer
	}
	return &Local{buffer: buffer, subs: map[string]map[*localSubscription]struct{}{}}
}

// Publish hands data to the subscribers of the subject. A subscriber that is too far behind is
// dropped with ErrSlow. It returns ErrClosed after Close.
func (l *Local) Publish(subject string, data []byte) error {
	return l.deliverMessage(subject, &Message{data: data, size: len(data)})
}

// PublishEvent is Publish for an event, which nothing encodes.
func (l *Local) PublishEvent(subject string, e core.Event) error {
	m := &Message{typed: true, size: e.Size, event: e, hasData: true}
	if d, ok := e.Data.(core.DeltaData); ok {
		m.size = len(d.Text)
	}
	if e.Frame == nil {
		m.event.Frame = &m.frame
	}
	return l.deliverMessage(subject, m)
}

func (l *Local) deliverMessage(subject string, message *Message) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosed
	}
	for s := range l.subs[subject] {
		s.mu.Lock()
		isSlow := len(s.queue) >= l.buffer || len(s.queue) > 0 && s.bytes+message.size > maxBehind
		if !isSlow {
			s.queue, s.bytes = append(s.queue, message), s.bytes+message.size
			core.Signal(s.ready) // closed only under l.mu
		}
		s.mu.Unlock()
		if isSlow {
			l.removeSubscription(s, ErrSlow)
		}
	}
	return nil
}

// Subscribe subscribes to a subject. It returns ErrClosed after Close.
func (l *Local) Subscribe(subject string) (Subscription, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, ErrClosed
	}
	s := &localSubscription{bus: l, subject: subject, ready: make(chan struct{}, 1)}
	if l.subs[subject] == nil {
		l.subs[subject] = map[*localSubscription]struct{}{}
	}
	l.subs[subject][s] = struct{}{}
	return s, nil
}

// signalLoss sends all subscribers an empty message: some messages may have been lost.
func (l *Local) signalLoss() {
	l.mu.Lock()
	subjects := slices.Collect(maps.Keys(l.subs))
	l.mu.Unlock()
	for _, subject := range subjects {
		_ = l.Publish(subject, nil) // it fails only after Close
	}
}

// Close ends all subscriptions with ErrClosed, so that readers do not delay the stop of a
// server. It may be called more than once.
func (l *Local) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, subs := range l.subs {
		for s := range subs {
			l.removeSubscription(s, ErrClosed)
		}
	}
}

// removeSubscription removes the subscription. The caller holds l.mu.
func (l *Local) removeSubscription(s *localSubscription, why error) {
	subs := l.subs[s.subject]
	if _, open := subs[s]; !open {
		return
	}
	delete(subs, s)
	if len(subs) == 0 {
		delete(l.subs, s.subject)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = why
	close(s.ready)
}

// localSubscription is a subscriber of a Local bus. Its queue uses memory only while it is not
// empty: most subscribers are idle most of the time.
type localSubscription struct {
	bus     *Local
	subject string
	ready   chan struct{}

	mu    sync.Mutex
	queue []*Message // guarded by mu
	bytes int        // in the queue; guarded by mu
	ended error      // why, when ready is closed; guarded by mu
}

func (s *localSubscription) Ready() <-chan struct{} { return s.ready }

func (s *localSubscription) Take() (*Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return nil, s.ended
	}
	m := s.queue[0]
	s.queue[0] = nil
	s.queue = s.queue[1:]
	s.bytes -= m.size
	switch {
	case len(s.queue) == 0:
		s.queue = nil
	case s.ended == nil:
		core.Signal(s.ready)
	}
	return m, nil
}

func (s *localSubscription) Waiting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue) > 0
}

// Close drops the messages that were not taken.
func (s *localSubscription) Close() {
	s.bus.mu.Lock()
	s.bus.removeSubscription(s, errReaderLeft)
	s.bus.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue, s.bytes = nil, 0
}
