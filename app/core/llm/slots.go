package llm

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
)

// Servers are the servers of all models, by their addresses. The zero value is ready.
// Safe for concurrent use.
type Servers struct {
	mu    sync.Mutex
	known map[[2]string]*slots // by provider and address; guarded by mu
}

// slots are the calls that a server takes at once.
type slots struct {
	count atomic.Int64  // as configured; 0 = no limit
	free  chan struct{} // holds one element per free slot
}

// maxSlots is the max number of slots: no process makes more calls at once.
const maxSlots = 10_000

// Share returns the model of the entry as one whose calls wait for a slot of its server.
// Models at one address share its slots; of several numbers (Entry.Slots) the largest counts.
// Where none is configured, calls do not wait.
func (s *Servers) Share(model Model, e Entry) Model {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[[2]string]*slots{}
	}
	at := [2]string{e.Provider, e.BaseURL}
	shared := s.known[at]
	if shared == nil {
		shared = &slots{free: make(chan struct{}, maxSlots)}
		s.known[at] = shared
	}
	for n := int64(min(e.Slots, maxSlots)); shared.count.Load() < n; shared.count.Add(1) {
		shared.free <- struct{}{}
	}
	return &sharing{Model: model, shared: shared}
}

// sharing is a model that shares the slots of its server.
type sharing struct {
	Model
	shared *slots
}

// Stream is the model's Stream in a slot of its server. If it waits for the slot, it yields a Delta that is Queued and, behind
// the wait, an empty one. Meanwhile a done ctx ends the call with KindCanceled.
func (m *sharing) Stream(ctx context.Context, req Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		if m.shared.count.Load() > 0 {
			waits := len(m.shared.free) == 0
			if waits && !yield(Delta{Queued: true}, nil) {
				return
			}
			select {
			case <-m.shared.free:
				defer func() { m.shared.free <- struct{}{} }()
			case <-ctx.Done():
				yield(Delta{}, CanceledError(ctx, m.Info().Provider))
				return
			}
			if waits && !yield(Delta{}, nil) {
				return
			}
		}
		m.Model.Stream(ctx, req)(yield)
	}
}
