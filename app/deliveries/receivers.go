package deliveries

import (
	"sync"
	"time"
)

// A receiver that cannot be reached so often in a row, by any of its deliveries, is
// left alone for a while, and is then tried with one delivery until it answers.
const (
	outageAfter = 3
	firstPause  = 5 * time.Second
	lastPause   = time.Minute
	forgetAfter = 10 * time.Minute // an outage that nobody has met since
)

// receivers keeps in mind who is delivered to, and who does not answer, so that one of
// them cannot take all slots. Safe for concurrent use.
type receivers struct {
	each int // most deliveries to one at once

	mu      sync.Mutex
	busy    map[string]int     // guarded by mu; deliveries at work
	outages map[string]*outage // guarded by mu
}

// outage is how long a receiver was not reached.
type outage struct {
	failures int // in a row
	until    time.Time
}

func newReceivers(each int) *receivers {
	return &receivers{each: each, busy: map[string]int{}, outages: map[string]*outage{}}
}

// limits returns how many deliveries receivers may get now that may not get all.
func (r *receivers) limits() map[string]int {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	limits := make(map[string]int, len(r.busy))
	for name, n := range r.busy {
		limits[name] = max(r.each-n, 0)
	}
	for name, o := range r.outages {
		switch {
		case now.Sub(o.until) > forgetAfter:
			delete(r.outages, name)
		case o.failures >= outageAfter && (now.Before(o.until) || r.busy[name] > 0):
			limits[name] = 0
		case o.failures >= outageAfter:
			limits[name] = 1
		}
	}
	return limits
}

// begin notes a delivery that is at work.
func (r *receivers) begin(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy[name]++
}

// end notes that it is not any more, and whether its receiver was reached.
func (r *receivers) end(name string, reached bool) {
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
	pause := lastPause
	if shift := o.failures - outageAfter; shift < 4 { // 5 s, 10 s, 20 s, 40 s, 60 s …
		pause = firstPause << max(shift, 0)
	}
	o.until = time.Now().Add(pause)
}
