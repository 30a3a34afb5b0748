package quota

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxBuckets bounds the number of buckets.
const maxBuckets = 10_000

// Buckets are token buckets by name. A nil *Buckets limits nothing. Safe for concurrent use.
type Buckets struct {
	limit rate.Limit
	burst int

	mu sync.Mutex
	by map[string]*rate.Limiter // guarded by mu
}

// NewBuckets returns buckets of burst tokens that refill at perSecond; nil, which limits nothing,
// for a rate of 0.
func NewBuckets(perSecond float64, burst int) *Buckets {
	if perSecond <= 0 {
		return nil
	}
	return &Buckets{limit: rate.Limit(perSecond), burst: max(1, burst), by: map[string]*rate.Limiter{}}
}

// Take takes a token from the bucket and returns 0, or if it is empty, the time until the
// next token.
func (b *Buckets) Take(name string) (wait time.Duration) {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	bucket := b.by[name]
	if bucket == nil {
		b.makeRoom()
		bucket = rate.NewLimiter(b.limit, b.burst)
		b.by[name] = bucket
	}
	b.mu.Unlock()
	if bucket.Allow() {
		return 0
	}
	missing := max(0, 1-bucket.Tokens())
	return time.Millisecond + time.Duration(missing/float64(b.limit)*float64(time.Second))
}

// Len returns the number of buckets.
func (b *Buckets) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.by)
}

// makeRoom removes full buckets, which equal new ones, if there are too many, and if fewer than a
// tenth were full, arbitrary ones up to a tenth. The caller holds mu.
func (b *Buckets) makeRoom() {
	if len(b.by) < maxBuckets {
		return
	}
	for name, bucket := range b.by {
		if bucket.Tokens() >= float64(b.burst) {
			delete(b.by, name)
		}
	}
	for name := range b.by {
		if len(b.by) <= maxBuckets*9/10 {
			return
		}
		delete(b.by, name)
	}
}
