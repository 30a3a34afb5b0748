package deliveries

import (
	"sync"
	"time"

	"bobbin/app/core"
)

// A receiver that cannot be reached several times in a row, by any of its deliveries, is
// paused, and then tried with one delivery at a time until it responds.
const (
	minPause    = 5 * time.Second
	maxPause    = time.Minute
	forgetAfter = 10 * time.Minute // an outage without any try since
)

// receivers tracks the deliveries in progress and the outages of receivers, so that one of them
// cannot take all slots. Safe for concurrent use.
type receivers struct {
	maxEach int // maximum of concurrent deliveries to one receiver

	mu      sync.Mutex
	busy    map[string]int     // guarded by mu; deliveries in progress
	outages map[string]*outage // guarded by mu
}

// outage is how long a receiver has not been reached.
type outage struct {
	failures int // in a row
	until    time.Time
}

// slotLimits returns how many more deliveries each receiver may get now, for receivers with a
// limit.
func (r *receivers) slotLimits() map[string]int {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	limits := make(map[string]int, len(r.busy))
	for name, n := range r.busy {
		limits[name] = max(r.maxEach-n, 0)
	}
	for name, o := range r.outages {
		switch {
		case now.Sub(o.until) > forgetAfter:
			delete(r.outages, name)
		case o.failures >= core.OutageAfter && (now.Before(o.until) || r.busy[name] > 0):
			limits[name] = 0
		case o.failures >= core.OutageAfter:
			limits[name] = 1
		}
	}
	return limits
}

// recordStart records a delivery that begins.
func (r *receivers) recordStart(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy[name]++
}

// recordEnd records that a delivery has ended, and whether its receiver was reached.
func (r *receivers) recordEnd(name string, reached bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy[name]--; r.busy[name] <= 0 {
		delete(r.busy, name)
	}
	if reached {
		delete(r.outages, name)
		return
	}
	o := r.outages[name]
	if o == nil {
		o = &outage{}
		r.outages[name] = o
	}
	o.failures++
	pause := maxPause
	if shift := o.failures - core.OutageAfter; shift < 4 { // 5 s, 10 s, 20 s, 40 s, 60 s …
		pause = minPause << max(shift, 0)
	}
	o.until = time.Now().Add(pause)
}
