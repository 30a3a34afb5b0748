package llm

import (
	"context"
	"errors"
	"iter"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"time"
)

// ErrYielded is the cause of a background call (Request.Background) that ended, or did not
// begin, because its server was needed for a user's call. AwaitFree says when it may
// be tried again.
var ErrYielded = errors.New("the model's server was needed for a call that a user waits for")

const (
	// idleTime is how long the last slot of a server has been free before a background
	// call takes it: the calls of a tool loop follow each other faster.
	idleTime = 2 * time.Second
	// learnedFor is how long a number of slots is believed that was learned.
	learnedFor = 10 * time.Minute
	// yieldTime is how long a call waits for the background call that it ended to be gone.
	yieldTime = time.Second
	// waitsToLearn is how many calls in a row have to wait for others to end before the
	// server is assumed to handle no more at once.
	waitsToLearn = 2
	// minWait is the shortest wait for a first delta that may mean that others were
	// worked on before.
	minWait = time.Second
)

// Servers are the servers of all models, by their addresses. The zero value is ready.
// Safe for concurrent use.
type Servers struct {
	mu    sync.Mutex
	known map[[2]string]*slots // by provider and address; guarded by mu
}

// Share returns the model of the entry as one of those that share the slots of its
// server: while a user waits for a call, background calls yield to it where the server
// has few slots. Entry.Slots is their number. Without that a server
// on this machine, and Ollama anywhere, is assumed to have one until several calls were
// answered at once; any other to have many until it refuses calls beside others (429, 503)
// or lets them wait for each other.
func (s *Servers) Share(model Model, e Entry) Model {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[[2]string]*slots{}
	}
	at := [2]string{e.Provider, e.BaseURL}
	shared := s.known[at]
	if shared == nil {
		shared = &slots{changed: make(chan struct{})}
		if isOllama(e.Provider) || onThisMachine(e.BaseURL) {
			shared.assumed = 1
		}
		s.known[at] = shared
	}
	shared.setConfigured(e.Slots)
	return &sharing{Model: model, shared: shared}
}

// onThisMachine reports whether the address is one of this machine's own.
func onThisMachine(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
}

// Contend reports whether a call of one model has to wait for one of the other: they are
// at one server that works on one request at a time.
func Contend(a, b Model) bool {
	s := slotsOf(a)
	return s != nil && s == slotsOf(b) && s.isSingle()
}

// Free reports whether a background call of the model may begin.
func Free(model Model) bool {
	s := slotsOf(model)
	if s == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.backgroundDelay() <= 0
}

// AwaitFree waits until a background call of the model may begin. It returns the cause of
// ctx when that is done before.
func AwaitFree(ctx context.Context, model Model) error {
	s := slotsOf(model)
	for s != nil {
		s.mu.Lock()
		wait, changed := s.backgroundDelay(), s.changed
		s.mu.Unlock()
		if wait <= 0 {
			break
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-changed:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
		timer.Stop()
	}
	return nil
}

// slotsOf returns the slots that the model shares with others; nil = none.
func slotsOf(model Model) *slots {
	if m, ok := model.(interface{ serverSlots() *slots }); ok {
		return m.serverSlots()
	}
	return nil
}

// sharing is a model that shares the slots of its server.
type sharing struct {
	Model
	shared *slots
}

func (m *sharing) serverSlots() *slots { return m.shared }

// Stream is the model's Stream in a slot of its server.
func (m *sharing) Stream(ctx context.Context, req Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		ctx, call := m.shared.acquire(ctx, req.Background)
		if call == nil {
			yield(Delta{}, m.yieldedError())
			return
		}
		defer m.shared.release(call)
		for d, err := range m.Model.Stream(ctx, req) {
			if err != nil && errors.Is(context.Cause(ctx), ErrYielded) {
				err = m.yieldedError()
			}
			m.shared.learnFromAnswer(call, err)
			if !yield(d, err) || err != nil {
				return
			}
		}
	}
}

func (m *sharing) yieldedError() error {
	return &Error{Kind: KindCanceled, Provider: m.Info().Provider, Message: ErrYielded.Error(), Err: ErrYielded}
}

// slots are the requests that one server handles at once.
type slots struct {
	mu         sync.Mutex
	configured int           // guarded by mu, as all below; 0 = not
	assumed    int           // until a number is learned; 0 = many
	learned    int           // 0 = nothing
	until      time.Time     // learned is valid
	calls      []*slotCall   // that are made, in the order in which they began
	last       time.Time     // a call ended that was not a background one
	changed    chan struct{} // closed when a call ends
	usual      time.Duration // until the first delta of a run's call that was alone; 0 = not known
	waits      int           // in a row, as in waitsToLearn
}

// slotCall is a call that is made.
type slotCall struct {
	background bool
	start      time.Time
	before     []*slotCall // that were made when it began
	hasSpoken  bool        // its first delta has come
	cancel     context.CancelCauseFunc
	ended      chan struct{}
}

// setConfigured sets the number of slots; of several models at a server the largest
// number counts.
func (s *slots) setConfigured(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.configured = max(s.configured, n)
}

// slotCount returns how many slots there are; 0 = many. The caller holds mu.
func (s *slots) slotCount() int {
	switch {
	case s.configured > 0:
		return s.configured
	case s.learned > 0 && time.Now().Before(s.until):
		return s.learned
	default:
		return s.assumed
	}
}

func (s *slots) isSingle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.slotCount() == 1
}

// backgroundDelay returns how long a background call has to wait; a call that ends may
// shorten that. The caller holds mu.
func (s *slots) backgroundDelay() time.Duration {
	size := s.slotCount()
	switch free := size - len(s.calls); {
	case size == 0 || free > 1:
		return 0
	case free <= 0:
		return learnedFor
	default:
		return idleTime - time.Since(s.last)
	}
}

// acquire takes a slot for a call, which must use the returned context. A background call
// gets nil if no slot is free; any other call always proceeds, and ends a background call
// that holds the slot.
func (s *slots) acquire(ctx context.Context, background bool) (context.Context, *slotCall) {
	s.mu.Lock()
	if background && s.backgroundDelay() > 0 {
		s.mu.Unlock()
		return ctx, nil
	}
	c := &slotCall{background: background, start: time.Now(), before: slices.Clone(s.calls), ended: make(chan struct{})}
	ctx, c.cancel = context.WithCancelCause(ctx)
	var yields *slotCall
	if i := slices.IndexFunc(s.calls, func(o *slotCall) bool { return o.background }); !background && i >= 0 && s.slotCount() > 0 && len(s.calls) >= s.slotCount() {
		yields = s.calls[i]
	}
	s.calls = append(s.calls, c)
	s.mu.Unlock()
	if yields != nil {
		yields.cancel(ErrYielded)
		timer := time.NewTimer(yieldTime)
		defer timer.Stop()
		select {
		case <-yields.ended:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return ctx, c
}

// release frees the slot of a call.
func (s *slots) release(c *slotCall) {
	c.cancel(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = slices.DeleteFunc(s.calls, func(o *slotCall) bool { return o == c })
	if !c.background {
		s.last = time.Now()
	}
	close(c.ended)
	close(s.changed)
	s.changed = make(chan struct{})
}

// learnFromAnswer learns the number of slots from the first delta of an answer, or from its
// failure.
func (s *slots) learnFromAnswer(c *slotCall, err error) {
	if c.hasSpoken { // only its own goroutine sets it
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		if (IsKind(err, KindRateLimit) || IsKind(err, KindOverloaded)) && len(s.calls) > 1 {
			s.setLearned(len(s.calls) - 1)
		}
		return
	}
	c.hasSpoken = true
	took, answered, beside := time.Since(c.start), 1, 0
	for _, o := range s.calls {
		if o != c && o.hasSpoken {
			answered++
		}
	}
	for _, o := range c.before {
		if slices.Contains(s.calls, o) {
			beside++
		}
	}
	switch {
	case answered > 1: // at once
		if s.waits = 0; s.slotCount() > 0 && answered > s.slotCount() {
			s.setLearned(answered)
		}
	case len(c.before) == 0 && !c.background:
		s.usual = took
	case len(c.before) > 0 && beside == 0 && took > minWait+2*s.usual:
		if s.waits++; s.waits >= waitsToLearn && s.slotCount() == 0 {
			s.setLearned(len(c.before))
		}
	}
}

// setLearned sets the learned number of slots. The caller holds mu.
func (s *slots) setLearned(n int) { s.learned, s.until = n, time.Now().Add(learnedFor) }
