package crash_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"time"

	"bobbin/tests/dbtest"
	"bobbin/tests/process"
)

// kind is a kind of fault.
type kind string

const (
	kindKill     kind = "kill"
	kindStop     kind = "stop"
	kindFreeze   kind = "freeze"
	kindDatabase kind = "database"
	kindCut      kind = "cut"
	kindStall    kind = "stall"
	kindRoute    kind = "route"
)

// strike is one fault.
type strike struct {
	at    time.Duration // since the beginning
	kind  kind
	who   int           // replica, or pair of replicas
	long  time.Duration // until it is mended
	other bool          // the other form of the fault
}

// habit is how often and how long faults of a kind come.
type habit struct {
	kind  kind
	every time.Duration
	least time.Duration
	most  time.Duration
}

// leaseTime is how long the others must wait for the runs of a replica that is killed
// and stays away.
const leaseTime = 35 * time.Second

func habits() []habit {
	return []habit{
		{kindKill, 12 * time.Second, 0, 3 * time.Second},
		{kindStop, 25 * time.Second, 0, 2 * time.Second},
		{kindFreeze, 30 * time.Second, 500 * time.Millisecond, 10 * time.Second},
		{kindDatabase, 75 * time.Second, 0, 5 * time.Second},
		{kindCut, 20 * time.Second, 200 * time.Millisecond, 8 * time.Second},
		{kindStall, 25 * time.Second, 500 * time.Millisecond, 20 * time.Second},
		{kindRoute, 15 * time.Second, time.Second, 20 * time.Second},
	}
}

// plan returns the strikes of a run: each kind at least once, at random moments.
func plan(r *rand.Rand, long time.Duration) []strike {
	var all []strike
	for n, h := range habits() {
		at := time.Duration(float64(long) * (0.05 + 0.5*r.Float64()))
		at = min(at, time.Duration(r.ExpFloat64()*float64(h.every))+500*time.Millisecond)
		for first := true; at < long; first = false {
			s := strike{at: at, kind: h.kind, who: r.IntN(3), long: h.least + time.Duration(r.Float64()*float64(h.most-h.least)), other: r.IntN(2) == 0}
			if first {
				s.who = n % 3 // two first ones do not meet at one place
			}
			if rarely := r.IntN(8) == 0; h.kind == kindKill && (first || rarely) || h.kind == kindFreeze && rarely {
				s.long += leaseTime
			}
			all = append(all, s)
			at += time.Duration(r.ExpFloat64() * float64(h.every))
		}
	}
	slices.SortStableFunc(all, func(a, b strike) int { return cmp.Compare(a.at, b.at) })
	return all
}

// breaker carries strikes out.
type breaker struct {
	world *world
	mend  chan struct{} // closed when everything but what a kill left behind is to be mended
	wait  sync.WaitGroup

	mu     sync.Mutex
	busy   map[string]bool // what is broken; guarded by mu
	struck map[kind]int    // guarded by mu
	missed int             // strikes at what was broken already; guarded by mu
}

func newBreaker(w *world) *breaker {
	return &breaker{world: w, mend: make(chan struct{}), busy: map[string]bool{}, struck: map[kind]int{}}
}

// run carries out the strikes and returns when the time is over and everything is mended
// but what a kill left behind.
func (b *breaker) run(ctx context.Context, strikes []strike, long time.Duration) {
	began := time.Now()
	for _, s := range strikes {
		if !process.Pause(ctx, time.Until(began.Add(s.at))) {
			break
		}
		b.wait.Go(func() { b.strike(ctx, s) })
	}
	process.Pause(ctx, time.Until(began.Add(long)))
	close(b.mend)
	b.wait.Wait()
}

// take takes a place for the fault: its own, or the next where nothing is broken. It
// returns an empty one if there is none.
func (b *breaker) take(s strike) (place string, do func(context.Context) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for n := range replicaCount {
		next := s
		next.who = (s.who + n) % replicaCount
		if place, do = b.fault(next); !b.busy[place] {
			b.busy[place] = true
			b.struck[s.kind]++
			return place, do
		}
	}
	b.missed++
	return "", nil
}

// first reports whether no fault of the kind has struck yet.
func (b *breaker) first(k kind) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.struck[k] == 0
}

func (b *breaker) give(place string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.busy, place)
}

// strike carries out one fault and mends it.
func (b *breaker) strike(ctx context.Context, s strike) {
	place, do := b.take(s)
	for place == "" && b.first(s.kind) && process.PauseUnless(ctx, 100*time.Millisecond, b.mend) {
		place, do = b.take(s)
	}
	if place == "" {
		return
	}
	defer b.give(place)
	if err := do(ctx); err != nil && ctx.Err() == nil {
		b.world.violate("%s of %s: %v", s.kind, place, err)
	}
}

// fault returns what the fault breaks, and how.
func (b *breaker) fault(s strike) (place string, do func(context.Context) error) {
	w := b.world
	r := w.replicas[s.who]
	switch s.kind {
	case kindKill:
		return r.name, func(ctx context.Context) error {
			w.takeovers.killed(ctx, r.name, r.Kill)
			process.PauseUnless(ctx, s.long, b.mend)
			if s.long > leaseTime {
				return w.returns(ctx, r)
			}
			return r.start(ctx)
		}
	case kindStop:
		return r.name, func(ctx context.Context) error {
			err := r.Stop(patience)
			process.PauseUnless(ctx, s.long, b.mend)
			return errors.Join(err, r.start(ctx))
		}
	case kindFreeze:
		return r.name, func(ctx context.Context) error {
			err := r.Signal(syscall.SIGSTOP)
			process.PauseUnless(ctx, s.long, b.mend)
			return errors.Join(err, r.Signal(syscall.SIGCONT))
		}
	case kindDatabase:
		return "database", func(ctx context.Context) error {
			mode := dbtest.StopFast
			if s.other {
				mode = dbtest.StopImmediate
			}
			err := w.server.Stop(mode)
			process.PauseUnless(ctx, s.long, b.mend)
			return errors.Join(err, w.server.Start(ctx))
		}
	case kindCut:
		return "link of " + r.name, func(ctx context.Context) error {
			b.through(ctx, s.long, process.LinkCut, false, r.database)
			return nil
		}
	case kindStall:
		return "link of " + r.name, func(ctx context.Context) error {
			b.through(ctx, s.long, process.LinkStalled, s.other, r.database)
			return nil
		}
	default:
		return fmt.Sprintf("route %d", s.who), func(ctx context.Context) error {
			state := process.LinkCut
			if s.other {
				state = process.LinkStalled
			}
			b.through(ctx, s.long, state, false, w.routes[s.who]...)
			return nil
		}
	}
}

// through breaks links for a while. A stall ends by a break, or as if nothing had been.
func (b *breaker) through(ctx context.Context, d time.Duration, state process.LinkState, breaks bool, links ...*process.Link) {
	for _, l := range links {
		l.Set(state)
	}
	process.PauseUnless(ctx, d, b.mend)
	for _, l := range links {
		if breaks {
			l.Set(process.LinkCut)
		}
		l.Set(process.LinkOpen)
	}
}

// counts returns how often each kind of fault struck, in words.
func (b *breaker) counts() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := ""
	for _, k := range slices.Sorted(maps.Keys(b.struck)) {
		text += fmt.Sprintf("%s %d, ", k, b.struck[k])
	}
	return text + fmt.Sprintf("missed %d", b.missed)
}
