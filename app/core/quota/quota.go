// Package quota limits what the current requests hold together, such as bytes of memory: for all
// callers, for one owner, and for one end user.
//
// One owner has a quarter of the total and one end user a sixteenth. All end users of an owner
// leave a quarter of the owner's share to its keys, and owners leave the last quarter of the total
// to those who hold little, as do the end users of an owner, so that no caller locks out the others.
// What is held at the caller's pace, such as a body being received, is granted immediately or refused. What the server does at
// its own pace waits in a queue.
//
// Buckets limit how often callers do something.
package quota

import (
	"context"
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

	mu    sync.Mutex
	used  map[string]int64 // by the names of Hold.levels; guarded by mu
	queue []*waiter        // in the order of arrival; guarded by mu
}

// waiter is a hold that waits for room.
type waiter struct {
	hold  *Hold
	n     int64
	ready chan struct{} // closed when it got its room
}

// New returns an unused quota.
func New(limits Limits) *Quota {
	if limits.Wait <= 0 {
		limits.Wait = 10 * time.Second
	}
	return &Quota{limits: limits, used: map[string]int64{}}
}

// Used returns how much all callers hold together.
func (q *Quota) Used() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.used[""]
}

// allUsers is the name of the level of all end users of an owner, after the owner's; no user has it.
const allUsers = "\x00"

// allUsers returns how much all end users of one owner may hold together.
func (l Limits) allUsers() int64 { return max(l.Owner/4*3, l.User) }

// Hold is what one request holds. A nil Hold has no quota and allows everything. Safe for
// concurrent use.
type Hold struct {
	quota  *Quota
	owner  string  // the name of the owner's level
	levels []level // the caller's own first, that of all callers last
	n      int64   // guarded by quota.mu
}

// level groups holds that are counted together, with their maximum.
type level struct {
	name string // empty = all callers
	max  int64
}

// Hold returns an empty hold for the caller in scope. It must be released.
func (q *Quota) Hold(tenant core.Tenant) *Hold {
	if q == nil {
		return nil
	}
	owner := tenant.Owner + "\x00"
	levels := []level{{owner, q.limits.Owner}, {"", q.limits.Total}}
	if tenant.User != "" {
		levels = append([]level{{owner + tenant.User, q.limits.User}, {owner + allUsers, q.limits.allUsers()}}, levels...)
	}
	return &Hold{quota: q, owner: owner, levels: levels}
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
	if full := h.fullLevel(more); full != nil {
		return h.fullError(*full)
	}
	h.addHeld(more)
	return nil
}

// Add takes more even if there is no room: for what is in memory already. Others wait until
// there is room again.
func (h *Hold) Add(more int64) {
	if h == nil {
		return
	}
	h.quota.mu.Lock()
	defer h.quota.mu.Unlock()
	h.addHeld(more)
}

// Resize replaces what is held by n, as soon as there is room; until then what is held stays. The
// errors are those of Grow, and the cause of ctx's end; after an error nothing is held.
func (h *Hold) Resize(ctx context.Context, n int64) error {
	if h == nil {
		return nil
	}
	h.Keep(n)
	q := h.quota
	w := &waiter{hold: h, n: n, ready: make(chan struct{})}
	q.mu.Lock()
	q.queue = append(q.queue, w)
	q.grantWaiting()
	q.mu.Unlock()
	limit := time.NewTimer(q.limits.Wait)
	defer limit.Stop()
	select {
	case <-w.ready:
		return nil
	case <-limit.C:
	case <-ctx.Done():
	}
	return q.removeWaiter(ctx, w)
}

// Keep releases what is held beyond n.
func (h *Hold) Keep(n int64) {
	if h == nil {
		return
	}
	h.quota.mu.Lock()
	defer h.quota.mu.Unlock()
	if n < h.n {
		h.addHeld(n - h.n)
		h.quota.grantWaiting()
	}
}

// Release releases everything. It may be called more than once.
func (h *Hold) Release() { h.Keep(0) }

// removeWaiter removes the waiter from the queue and returns why it got no room, unless it just
// did.
func (q *Quota) removeWaiter(ctx context.Context, w *waiter) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.queue, w)
	if i < 0 {
		return nil
	}
	q.queue = slices.Delete(q.queue, i, i+1)
	w.hold.addHeld(-w.hold.n)
	defer q.grantWaiting()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if full := w.hold.fullLevel(w.n); full != nil {
		return w.hold.fullError(*full)
	}
	w.hold.addHeld(w.n) // others may have released room just now
	return nil
}

// grantWaiting gives the waiters room in their order, as far as there is some. The caller holds
// mu.
func (q *Quota) grantWaiting() {
	q.queue = slices.DeleteFunc(q.queue, func(w *waiter) bool {
		had := w.hold.n
		w.hold.addHeld(-had)
		granted := w.hold.fullLevel(w.n) == nil
		if granted {
			w.hold.addHeld(w.n)
			close(w.ready)
		} else {
			w.hold.addHeld(had)
		}
		return granted
	})
}

// fullLevel returns the level without room for more, nil if all have room. An amount larger
// than a level is accepted when nothing else is held. The caller holds quota.mu.
func (h *Hold) fullLevel(more int64) *level {
	for i, l := range h.levels {
		if used := h.quota.used[l.name]; used > 0 && used+more > l.max {
			return &h.levels[i]
		}
	}
	if h.isCrowded(more) {
		return &level{name: h.owner}
	}
	if h.isCrowdedForUsers(more) {
		return &level{name: h.owner + allUsers}
	}
	return nil
}

// isCrowded reports whether the rest of the total is reserved for owners who hold no more than a
// quarter of their share. One owner alone may always hold all of its share. The caller holds
// quota.mu.
func (h *Hold) isCrowded(more int64) bool {
	l, used := h.quota.limits, h.quota.used
	return used[h.owner] > l.Owner/4 && used[""]+more > max(l.Total/4*3, l.Owner)
}

// isCrowdedForUsers reports whether the rest of what all end users of the owner may hold is reserved
// for those who hold next to nothing, such as a message. One alone may always hold all of its share.
// The caller holds quota.mu.
func (h *Hold) isCrowdedForUsers(more int64) bool {
	l, used := h.quota.limits, h.quota.used
	const small = 64 // of which part of the share
	isUsers := len(h.levels) > 2
	return isUsers && l.User >= small && used[h.levels[0].name]+more > l.User/small && used[h.owner+allUsers]+more > max(l.allUsers()/4*3, l.User)
}

// addHeld adds to what is held; more may be negative. The caller holds quota.mu.
func (h *Hold) addHeld(more int64) {
	h.n += more
	for _, l := range h.levels {
		h.quota.used[l.name] += more
		if h.quota.used[l.name] == 0 {
			delete(h.quota.used, l.name)
		}
	}
}

// fullError returns the error for a level without room.
func (h *Hold) fullError(full level) error {
	what := h.quota.limits.What
	switch full.name {
	case h.owner + allUsers:
		return &core.Error{Kind: core.ErrRateLimited, Code: CodeExceeded, RetryAfter: time.Second,
			Message: "the requests of all end users use up their " + what + " quota; try again in a moment"}
	case "":
		return &core.Error{Kind: core.ErrUnavailable, Code: CodeExceeded, RetryAfter: time.Second,
			Message: "the requests of all callers use up the server's " + what + " quota; try again in a moment"}
	}
	return &core.Error{Kind: core.ErrRateLimited, Code: CodeExceeded, RetryAfter: time.Second,
		Message: "your requests use up the " + what + " quota of one caller; wait until some of them have ended, then try again"}
}
