// Package quota limits what the current requests hold together, such as bytes of memory: for all
// callers, for one owner, and for one end user.
//
// What is held at the caller's pace, such as a body being received, is granted immediately or
// refused. What the server does at its own pace waits until there is room.
//
// Buckets limit how often callers do something.
package quota

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"bobbin/app/core"
)

// Limits bound what is held, in any one unit.
type Limits struct {
	Total int64         // of all callers
	Owner int64         // of one owner
	User  int64         // of one end user
	Wait  time.Duration // how long a request waits; 0 = 10 s
	What  string        // what is held, in errors: "memory"
	Code  string        // of the errors; empty = CodeExceeded
	Retry time.Duration // when to try again after an error; 0 = 1 s
	Equal bool          // end users may hold all that is their owner's; the last quarter is for owners who hold less
}

// CodeExceeded is the code of requests that exceed the quota.
const CodeExceeded = "quota_exceeded"

// Shared returns limits that share total: one owner has a quarter of it and one end user a
// sixteenth, but each at least as much as the largest request needs.
func Shared(what string, total, largest int64) Limits {
	return Limits{What: what, Total: max(total, largest), Owner: max(total/4, largest), User: max(total/16, largest)}
}

// Quota tracks what is held and what may be. Safe for concurrent use.
type Quota struct {
	limits Limits

	mu      sync.Mutex
	used    map[core.Tenant]int64 // by owner, and by owner and user; the zero tenant is all callers; guarded by mu
	waiting []waiter              // oldest first; guarded by mu
}

// waiter is a Resize that waits; granted is closed when it has got n.
type waiter struct {
	hold    *Hold
	n       int64
	granted chan struct{}
}

// New returns an unused quota.
func New(limits Limits) *Quota {
	limits.Wait, limits.Code, limits.Retry = cmp.Or(limits.Wait, 10*time.Second), cmp.Or(limits.Code, CodeExceeded), cmp.Or(limits.Retry, time.Second)
	return &Quota{limits: limits, used: map[core.Tenant]int64{}}
}

// Used returns how much all callers hold together.
func (q *Quota) Used() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.used[core.Tenant{}]
}

// Hold is what one request holds. A nil Hold has no quota and allows everything. Safe for
// concurrent use.
type Hold struct {
	quota  *Quota
	tenant core.Tenant
	n      int64 // guarded by quota.mu
}

// Hold returns an empty hold for the caller. It must be released.
func (q *Quota) Hold(tenant core.Tenant) *Hold {
	if q == nil {
		return nil
	}
	return &Hold{quota: q, tenant: tenant}
}

// Place waits for one unit of the quota, such as a place for something expensive; release gives it
// back.
func (q *Quota) Place(ctx context.Context, tenant core.Tenant) (release func(), err error) {
	hold := q.Hold(tenant)
	return hold.Release, hold.Resize(ctx, 1)
}

// Grow takes more, immediately. ErrRateLimited says that the caller has reached its share,
// ErrUnavailable that all callers together have reached the total.
func (h *Hold) Grow(more int64) error {
	if h == nil {
		return nil
	}
	h.quota.mu.Lock()
	defer h.quota.mu.Unlock()
	return h.take(more)
}

// Resize replaces what is held by n, as soon as there is room. The errors are those of Grow, and
// the cause of ctx's end; after an error nothing is held.
func (h *Hold) Resize(ctx context.Context, n int64) error {
	if h == nil {
		return nil
	}
	h.Release()
	q, granted := h.quota, make(chan struct{})
	q.mu.Lock()
	err := h.take(n)
	if err != nil {
		q.waiting = append(q.waiting, waiter{h, n, granted})
	}
	q.mu.Unlock()
	if err == nil {
		return nil
	}
	limit := time.NewTimer(q.limits.Wait)
	defer limit.Stop()
	select {
	case <-granted:
		return nil
	case <-limit.C:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	q.mu.Lock()
	q.waiting = slices.DeleteFunc(q.waiting, func(w waiter) bool { return w.granted == granted })
	q.mu.Unlock()
	h.Release() // it may have been granted meanwhile
	return err
}

// Keep releases what is held beyond n.
func (h *Hold) Keep(n int64) {
	if h == nil {
		return
	}
	h.quota.mu.Lock()
	defer h.quota.mu.Unlock()
	if n < h.n {
		h.add(n - h.n)
		// Only who gets something is woken: many that wake up to wait again would keep all others from running.
		h.quota.waiting = slices.DeleteFunc(h.quota.waiting, func(w waiter) bool {
			granted := w.hold.take(w.n) == nil
			if granted {
				close(w.granted)
			}
			return granted
		})
	}
}

// Release releases everything. It may be called more than once.
func (h *Hold) Release() { h.Keep(0) }

// take takes more if there is room at each level. An amount larger than a level is accepted when
// nothing else is held. Where callers are equal, the last quarter of all is for owners who hold less than a
// quarter, unless one owner may hold everything. The caller holds quota.mu.
func (h *Hold) take(more int64) error {
	q, l := h.quota, h.quota.limits
	if h.tenant.User != "" && !l.Equal && h.n+more > l.User/64 {
		l.Owner = max(l.Owner/4*3, l.User) // the rest is for the owner's keys, and for users who take next to nothing, such as a message
	}
	owner, quarter := core.Tenant{Owner: h.tenant.Owner}, max(l.Total/4, 1)
	isCrowded := l.Equal && l.Owner < l.Total && q.used[owner] >= quarter && q.used[core.Tenant{}]+more > l.Total-quarter
	isFull := func(of core.Tenant, limit int64) bool { return q.used[of] > 0 && q.used[of]+more > limit }
	switch {
	case h.tenant.User != "" && isFull(h.tenant, l.User), isFull(owner, l.Owner), isCrowded && !isFull(core.Tenant{}, l.Total):
		return &core.Error{Kind: core.ErrRateLimited, Code: l.Code, RetryAfter: l.Retry,
			Message: "your requests use up the " + l.What + " quota of one caller; close some, or wait until they have ended, then try again"}
	case isFull(core.Tenant{}, l.Total):
		return &core.Error{Kind: core.ErrUnavailable, Code: l.Code, RetryAfter: l.Retry,
			Message: "the requests of all callers use up the server's " + l.What + " quota; try again in a moment"}
	}
	h.add(more)
	return nil
}

// add adds to what is held; more may be negative. The caller holds quota.mu.
func (h *Hold) add(more int64) {
	h.n += more
	levels := []core.Tenant{{}, {Owner: h.tenant.Owner}}
	if h.tenant.User != "" {
		levels = append(levels, h.tenant)
	}
	for _, level := range levels {
		if h.quota.used[level] += more; h.quota.used[level] == 0 {
			delete(h.quota.used, level)
		}
	}
}

// CodeStorageFull is the code of requests that would store more than the caller may.
const CodeStorageFull = "storage_full"

// Stored limits how many bytes are stored for one end user and for one owner. The sums are read from
// the database and kept for a minute; until then what is admitted is added. So a limit may be
// exceeded by what other processes, and runs, store meanwhile. A nil *Stored allows everything. Safe
// for concurrent use.
type Stored struct {
	limits StoredLimits

	mu   sync.Mutex
	sums *core.Cache[core.Tenant, *storedSum] // at first of none, which must be read; mu makes one of a tenant
}

// StoredLimits are in bytes; 0 = no limit.
type StoredLimits struct {
	User, Owner int64
	// Sum returns what is stored for an owner, or for one end user of the owner.
	Sum func(ctx context.Context, of core.Tenant) (int64, error)
	// CheckDisk returns an error while the disk has little room; nil = not known.
	CheckDisk func() error
}

// storedSum is what is stored for one tenant.
type storedSum struct {
	mu    sync.Mutex
	bytes int64         // guarded by mu
	read  time.Time     // guarded by mu
	took  time.Duration // to read it; guarded by mu
}

const (
	maxSumAge  = time.Minute
	maxSums    = 10_000 // tenants whose sums are kept
	sumReading = 20     // a full tenant's sum is read at most for one twentieth of the time
)

// NewStored returns the limits of what is stored.
func NewStored(limits StoredLimits) *Stored {
	return &Stored{limits: limits, sums: core.NewCache[core.Tenant, *storedSum](maxSums)}
}

// Admit returns ErrTooLarge with CodeStorageFull if there is no room for so many bytes more.
func (s *Stored) Admit(ctx context.Context, tenant core.Tenant, more int64) error {
	if work, keyed := core.KeyedWorkFrom(ctx); s == nil || keyed && work.Result != nil { // it is stored already
		return nil
	}
	if tenant.User != "" && s.limits.User > 0 {
		if err := s.admit(ctx, tenant, more, s.limits.User, "limits.user_bytes"); err != nil {
			return err
		}
	}
	if s.limits.Owner > 0 {
		return s.admit(ctx, core.Tenant{Owner: tenant.Owner}, more, s.limits.Owner, "limits.owner_bytes")
	}
	return nil
}

// AdmitCopy is Admit for what can wait until the disk has room again: imports, forks and files.
func (s *Stored) AdmitCopy(ctx context.Context, tenant core.Tenant, more int64) error {
	if err := s.CheckDisk(); err != nil {
		return err
	}
	return s.Admit(ctx, tenant, more)
}

// CheckDisk returns ErrUnavailable while the disk has little room.
func (s *Stored) CheckDisk() error {
	if s == nil || s.limits.CheckDisk == nil {
		return nil
	}
	return s.limits.CheckDisk()
}

func (s *Stored) admit(ctx context.Context, of core.Tenant, more, limit int64, setting string) error {
	s.mu.Lock()
	sum, ok := s.sums.Get(of)
	if !ok {
		sum = &storedSum{}
		s.sums.Set(of, sum)
	}
	s.mu.Unlock()
	sum.mu.Lock()
	defer sum.mu.Unlock()
	age := time.Since(sum.read)
	if age > maxSumAge || sum.bytes+more > limit && age > sumReading*sum.took {
		begin := time.Now()
		bytes, err := s.limits.Sum(ctx, of)
		if err != nil {
			return fmt.Errorf("sum of what is stored: %w", err)
		}
		sum.bytes, sum.read, sum.took = bytes, time.Now(), time.Since(begin)
	}
	if sum.bytes+more > limit {
		return &core.Error{Kind: core.ErrTooLarge, Code: CodeStorageFull, Message: fmt.Sprintf(
			"the stored texts use %s of %s, so there is no room for %s more: delete sessions, or have the operator raise %s",
			core.ByteSize(sum.bytes), core.ByteSize(limit), core.ByteSize(more), setting)}
	}
	sum.bytes += more
	return nil
}
