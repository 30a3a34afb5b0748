// Package rate says when a caller does something too often: every caller has a bucket
// of tokens that fills up steadily, and each time takes one.
package rate

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// most bounds the buckets that are kept.
const most = 10_000

// Buckets are the buckets of all callers, by name. A nil one holds nobody up. Safe for
// concurrent use.
type Buckets struct {
	limit rate.Limit
	burst int

	mu sync.Mutex
	by map[string]*rate.Limiter // guarded by mu
}

// New returns buckets that hold burst tokens and get so many of them a second; nil,
// which is no limit, for a rate of 0.
func New(perSecond float64, burst int) *Buckets {
	if perSecond <= 0 {
		return nil
	}
	return &Buckets{limit: rate.Limit(perSecond), burst: max(1, burst), by: map[string]*rate.Limiter{}}
}

// Take takes a token of the caller's. When there is none it returns after which time
// there will be one, else 0.
func (b *Buckets) Take(name string) (wait time.Duration) {
	if b == nil {
		return 0
	}
	bucket := b.bucket(name)
	if bucket.Allow() {
		return 0
	}
	return b.until(bucket)
}

// Look returns what Take would, and takes nothing.
func (b *Buckets) Look(name string) (wait time.Duration) {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	bucket, known := b.by[name]
	b.mu.Unlock()
	if !known || bucket.Tokens() >= 1 {
		return 0
	}
	return b.until(bucket)
}

// until returns after which time the bucket will have a token, never 0.
func (b *Buckets) until(bucket *rate.Limiter) time.Duration {
	missing := max(0, 1-bucket.Tokens())
	return time.Millisecond + time.Duration(missing/float64(b.limit)*float64(time.Second))
}

func (b *Buckets) bucket(name string) *rate.Limiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	if bucket, ok := b.by[name]; ok {
		return bucket
	}
	if len(b.by) >= most {
		b.shrink()
	}
	bucket := rate.NewLimiter(b.limit, b.burst)
	b.by[name] = bucket
	return bucket
}

// shrink makes room: full buckets are like new ones, and go; if all are in use a tenth
// of them goes, whichever. The caller holds mu.
func (b *Buckets) shrink() {
	for name, bucket := range b.by {
		if bucket.Tokens() >= float64(b.burst) {
			delete(b.by, name)
		}
	}
	for name := range b.by {
		if len(b.by) <= most*9/10 {
			return
		}
		delete(b.by, name)
	}
}

// Len returns how many buckets there are.
func (b *Buckets) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.by)
}
