package events

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"bobbin/app/core"
)

// Why a subscription ends by itself. Both errors may be shown to the reader.
var (
	// ErrSlow: the reader did not keep up and was dropped. It reconnects with the last event
	// number that it has, and misses nothing.
	ErrSlow error = &core.Error{Kind: core.ErrUnavailable, Code: core.CodeSlowReader,
		Message: "events arrived faster than they were read; reconnect with the last event id"}
	// ErrClosed: the bus is closed because the process stops.
	ErrClosed error = &core.Error{Kind: core.ErrUnavailable, Code: "stopping",
		Message: "the server is stopping; reconnect with the last event id"}
)

// Bus carries events and other bytes from publishers to the current subscribers. It may lose messages and may
// reorder those of different publishers: a Feed does not depend on it. Implementations are safe
// for concurrent use.
type Bus interface {
	// Publish hands data to the current subscribers of the subject and does not wait for them.
	// Data must not be changed afterwards.
	Publish(subject string, data []byte) error
	// PublishEvent is Publish for an event. It is encoded only for other processes, without its
	// data if they are too large for the bus and the store has them.
	PublishEvent(subject string, e core.Event) error
	// Subscribe subscribes to a subject. The caller closes the subscription.
	Subscribe(subject string) (*Subscription, error)
	// Close ends all subscriptions.
	Close()
}

// Message is a published message, shared by all subscribers of this process, so that it is
// decoded only once. Safe for concurrent use.
type Message struct {
	data  []byte
	typed bool // this process published an event; there are no bytes
	size  int  // in bytes, about

	once    sync.Once
	event   core.Event
	hasData bool // the event has its data
	err     error
	frame   core.Frame // of the event
}

// Data returns the bytes that were published; nil for an event of this process. They must not
// be changed.
func (m *Message) Data() []byte { return m.data }

// signalsLoss reports whether the message says that some messages may be lost.
func (m *Message) signalsLoss() bool { return !m.typed && len(m.data) == 0 }

// decodeOnce returns the event in the message; false if it comes without its data.
func (m *Message) decodeOnce() (core.Event, bool, error) {
	if !m.typed {
		m.once.Do(func() {
			m.event, m.hasData, m.err = decode(m.data)
			m.event.Frame = &m.frame
		})
	}
	return m.event, m.hasData, m.err
}

// wireEvent is a core.Event as it is sent over the bus.
type wireEvent struct {
	Session core.SessionID  `json:"s"`
	Seq     int64           `json:"n,omitempty"`
	Type    core.EventType  `json:"t"`
	Run     core.RunID      `json:"r,omitempty"`
	At      time.Time       `json:"at"`
	Data    json.RawMessage `json:"d,omitempty"`
	Hint    bool            `json:"h,omitempty"` // the data are left out: too large for the bus
}

// sessionSubject is the subject of a session's events.
func sessionSubject(session core.SessionID) string { return "session." + string(session) }

// encode leaves the data out if they are larger than maxWire and the store has them.
func encode(e core.Event) ([]byte, error) {
	w := wireEvent{Session: e.SessionID, Seq: e.Seq, Type: e.Type, Run: e.RunID, At: e.At}
	var err error
	if e.Data != nil {
		w.Data, err = json.Marshal(e.Data)
	}
	if e.Seq > 0 && len(w.Data) > maxWire {
		w.Data, w.Hint = nil, true
	}
	var raw []byte
	if err == nil {
		raw, err = json.Marshal(w)
	}
	if err != nil {
		return nil, fmt.Errorf("encode event %s: %w", e.Type, err)
	}
	return raw, nil
}

// decode returns the event, and false if it comes without its data.
func decode(raw []byte) (core.Event, bool, error) {
	var w wireEvent
	if err := json.Unmarshal(raw, &w); err != nil {
		return core.Event{}, false, fmt.Errorf("decode event: %w", err)
	}
	e := core.Event{SessionID: w.Session, Seq: w.Seq, Type: w.Type, RunID: w.Run, At: w.At, Size: len(w.Data)}
	if len(w.Data) > 0 {
		e.Data = core.DecodeEventData(w.Type, w.Data)
	}
	if _, ok := e.Data.(core.DeltaData); w.Type.IsText() && !ok {
		return core.Event{}, false, fmt.Errorf("decode event %s: its data are no delta", w.Type)
	}
	return e, !w.Hint, nil
}

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
	closed bool                                  // guarded by mu
	subs   map[string]map[*Subscription]struct{} // guarded by mu
}

// NewLocal returns a bus whose subscribers may be buffer messages behind; 0 = 1,024.
func NewLocal(buffer int) *Local {
	if buffer <= 0 {
		buffer = defaultBuffer
	}
	return &Local{buffer: buffer, subs: map[string]map[*Subscription]struct{}{}}
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
func (l *Local) Subscribe(subject string) (*Subscription, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, ErrClosed
	}
	s := &Subscription{bus: l, subject: subject, ready: make(chan struct{}, 1)}
	if l.subs[subject] == nil {
		l.subs[subject] = map[*Subscription]struct{}{}
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
func (l *Local) removeSubscription(s *Subscription, why error) {
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

// Subscription is one listener of a subject. Only one goroutine at a time takes from it. Its queue uses memory
// only while it is not empty: most subscribers are idle most of the time.
type Subscription struct {
	bus     *Local
	subject string
	ready   chan struct{}
	closed  func() // called by Close; nil = nothing is

	mu    sync.Mutex
	queue []*Message // guarded by mu
	bytes int        // in the queue; guarded by mu
	ended error      // why, when ready is closed; guarded by mu
}

// Ready has an element, or is closed, when Take has something to return. It may have one
// without a reason.
func (s *Subscription) Ready() <-chan struct{} { return s.ready }

// Take returns the oldest message that was not taken; an empty one means that some may have
// been lost. It returns nil when there is none at present. When all messages are taken and
// the subscription has ended, it returns the reason: ErrSlow or ErrClosed.
func (s *Subscription) Take() (*Message, error) {
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

// Waiting reports whether there is a message to take.
func (s *Subscription) Waiting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue) > 0
}

// Close ends the subscription and drops the messages that were not taken. It may be called more than once.
func (s *Subscription) Close() {
	s.bus.mu.Lock()
	s.bus.removeSubscription(s, errReaderLeft)
	s.bus.mu.Unlock()
	s.mu.Lock()
	s.queue, s.bytes = nil, 0
	s.mu.Unlock()
	if s.closed != nil {
		s.closed()
	}
}
