package quota

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"bobbin/app/core"
)

// maxBuckets bounds the number of buckets; with more, all of them begin anew.
const maxBuckets = 10_000

// Buckets are token buckets by name. A nil *Buckets limits nothing. Safe for concurrent use.
type Buckets struct {
	limit rate.Limit
	burst int

	mu sync.Mutex
	by *core.Cache[string, *rate.Limiter] // guarded by mu
}

// NewBuckets returns buckets of burst tokens that refill at perSecond; nil, which limits nothing,
// for a rate of 0.
func NewBuckets(perSecond float64, burst int) *Buckets {
	if perSecond <= 0 {
		return nil
	}
	return &Buckets{limit: rate.Limit(perSecond), burst: max(1, burst), by: core.NewCache[string, *rate.Limiter](maxBuckets)}
}

// Take takes a token from the bucket and returns 0, or if it is empty, the time until the
// next token.
func (b *Buckets) Take(name string) (wait time.Duration) {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	bucket, ok := b.by.Get(name)
	if !ok {
		bucket = rate.NewLimiter(b.limit, b.burst)
		b.by.Set(name, bucket)
	}
	b.mu.Unlock()
	if bucket.Allow() {
		return 0
	}
	missing := max(0, 1-bucket.Tokens())
	return time.Millisecond + time.Duration(missing/float64(b.limit)*float64(time.Second))
}
