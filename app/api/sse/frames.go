package sse

import (
	"sync"

	"bobbin/app/core"
)

// Bounds of what Frames remember.
const (
	maxFrames     = 64
	maxFrameBytes = 16 << 20
)

// Frames remember the latest events as they are written, so that one that goes to many
// readers is encoded once. An event is known by its data, which its readers share and
// nobody changes. A nil Frames remembers nothing. Safe for concurrent use.
type Frames struct {
	mu    sync.Mutex
	known map[*byte]*frame // by the first byte of the data; guarded by mu
	order []*frame         // as they came; guarded by mu
	bytes int              // of all data; guarded by mu
}

// frame is one event, encoded by who needs it first.
type frame struct {
	event core.Event
	once  sync.Once
	bytes []byte
	err   error
}

// NewFrames returns an empty memory.
func NewFrames() *Frames { return &Frames{known: map[*byte]*frame{}} }

// of returns the event as it is written. The bytes must not be changed.
func (f *Frames) of(e core.Event) ([]byte, error) {
	if f == nil || len(e.Data) == 0 {
		return AppendEvent(nil, e)
	}
	known := f.frame(e)
	known.once.Do(func() { known.bytes, known.err = AppendEvent(nil, e) })
	return known.bytes, known.err
}

// frame returns the frame of the event, which may have to be encoded still.
func (f *Frames) frame(e core.Event) *frame {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := &e.Data[0]
	if known := f.known[key]; known != nil && known.is(e) {
		return known
	}
	made := &frame{event: e}
	f.known[key] = made
	f.order = append(f.order, made)
	f.bytes += len(e.Data)
	for len(f.order) > maxFrames || f.bytes > maxFrameBytes && len(f.order) > 1 {
		f.forget()
	}
	return made
}

// forget makes room for another. The caller holds f.mu.
func (f *Frames) forget() {
	oldest := f.order[0]
	f.order[0] = nil
	f.order = f.order[1:]
	f.bytes -= len(oldest.event.Data)
	if key := &oldest.event.Data[0]; f.known[key] == oldest {
		delete(f.known, key)
	}
}

// is reports whether the frame says the event, whose data are the same memory.
func (f *frame) is(e core.Event) bool {
	known := f.event
	return known.Seq == e.Seq && known.Type == e.Type && known.SessionID == e.SessionID && known.RunID == e.RunID &&
		known.At.Equal(e.At) && len(known.Data) == len(e.Data)
}
