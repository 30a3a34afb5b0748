package quota_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"bobbin/app/core"
	"bobbin/app/core/quota"
	"bobbin/tests/compare"
	"bobbin/tests/must"
	"bobbin/tests/seed"
)

var (
	ann  = core.Tenant{Owner: "ann"}
	eve  = core.Tenant{Owner: "ann", User: "eve"}
	kim  = core.Tenant{Owner: "ann", User: "kim"}
	bob  = core.Tenant{Owner: "bob"}
	carl = core.Tenant{Owner: "carl"}
)

// small is a quota whose limits are reached quickly.
func small() *quota.Quota {
	return quota.New(quota.Limits{Total: 100, Owner: 60, User: 30, What: "memory"})
}

func TestGrow(t *testing.T) {
	t.Parallel()
	q := small()
	hold := func(tenant core.Tenant, n int64) *quota.Hold {
		h := q.Hold(tenant)
		if err := h.Grow(n); err != nil {
			t.Errorf("%v: got %v for %d, want none", tenant, err, n)
		}
		return h
	}
	refused := func(tenant core.Tenant, n int64, kind error) {
		t.Helper()
		h := q.Hold(tenant)
		var shown *core.Error
		if err := h.Grow(n); !errors.Is(err, kind) || !errors.As(err, &shown) || shown.RetryAfter <= 0 || shown.Code != quota.CodeExceeded {
			t.Errorf("%v: got %v for %d, want %v and when to try again", tenant, err, n, kind)
		}
		h.Release()
	}
	first := hold(eve, 30)
	refused(eve, 1, core.ErrRateLimited) // the end user's share
	hold(kim, 15)
	refused(kim, 1, core.ErrRateLimited)  // that of end users who hold more than next to nothing
	refused(ann, 16, core.ErrRateLimited) // the owner's
	hold(ann, 15)
	hold(bob, 40)
	refused(carl, 1, core.ErrUnavailable) // all
	first.Keep(25)
	refused(carl, 6, core.ErrUnavailable)
	hold(carl, 5)
	first.Release()
	first.Release()
	compare.Equal(t, "held after the release", 75, q.Used())
}

// Large requests of end users leave room for small ones, and for the owner's keys.
func TestSmallRequestsOfUsers(t *testing.T) {
	t.Parallel()
	q := quota.New(quota.Limits{Total: 4000, Owner: 400, User: 128})
	for i, n := range []int64{128, 128, 44} {
		must.Do(t, q.Hold(core.Tenant{Owner: "ann", User: fmt.Sprint(i)}).Grow(n))
	}
	h := q.Hold(core.Tenant{Owner: "ann", User: "late"})
	compare.True(t, h.Grow(3) != nil, "got none for a large request more, want an error")
	compare.Error(t, "for a small one", nil, h.Grow(2))
	compare.Error(t, "for the owner's key", nil, q.Hold(core.Tenant{Owner: "ann"}).Grow(98))
}

// What no share has room for gets in alone; otherwise it never would.
func TestLargerThanTheShare(t *testing.T) {
	t.Parallel()
	q := small()
	h := q.Hold(eve)
	compare.Error(t, "for the only request", nil, h.Grow(1000))
	compare.True(t, h.Grow(1) != nil, "got none for one more, want an error")
	upload := quota.New(quota.Limits{Total: 48, Owner: 40, User: 40}).Hold(eve)
	for range 40 { // one that grows
		compare.Error(t, "for a piece of the only request", nil, upload.Grow(1))
	}
}

// Waiters get room when it is released, and do not delay those whose share has room.
func TestResizeWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := small()
		first, others := q.Hold(ann), q.Hold(bob)
		must.Do(t, errors.Join(first.Grow(60), others.Resize(t.Context(), 5)))
		got := make(chan string, 2)
		wait := func(name string, tenant core.Tenant, n int64) {
			go func() {
				if err := q.Hold(tenant).Resize(t.Context(), n); err == nil {
					got <- name
				}
			}()
			synctest.Wait()
		}
		wait("eve", eve, 30)
		wait("bob", bob, 10)
		compare.Equal(t, "first: want whose share has room", "bob", <-got)
		first.Keep(15)
		compare.Equal(t, "next", "eve", <-got)
	})
}

// What is released goes to those that have waited longest, and to none that gave up.
func TestOldestWaitsLeast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := quota.New(quota.Limits{Total: 1, Owner: 1, User: 1})
		first := q.Hold(core.Tenant{Owner: "a"})
		must.Do(t, first.Resize(t.Context(), 1))
		gone, leave := context.WithCancel(t.Context())
		got := make(chan int, 4)
		for i, ctx := range []context.Context{gone, t.Context(), t.Context(), t.Context()} {
			go func() {
				h := q.Hold(core.Tenant{Owner: fmt.Sprint(i)})
				if err := h.Resize(ctx, 1); err == nil {
					got <- i
					h.Release()
				}
			}()
			synctest.Wait()
		}
		leave()
		synctest.Wait()
		first.Release()
		synctest.Wait()
		close(got)
		var order []int
		for i := range got {
			order = append(order, i)
		}
		if want := []int{1, 2, 3}; !slices.Equal(order, want) || q.Used() != 0 {
			t.Errorf("got the order %v and %d held, want %v and none", order, q.Used(), want)
		}
	})
}

// Whatever is taken and released: no share is exceeded, and in the end nothing is held.
func TestSharesHold(t *testing.T) {
	t.Parallel()
	type taken struct {
		hold  *quota.Hold
		scope core.Tenant
		n     int64
	}
	seed.Check(t, func(t *rapid.T) {
		q := small()
		var held []taken
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			next := taken{scope: rapid.SampledFrom([]core.Tenant{ann, eve, kim, bob, carl}).Draw(t, "scope"), n: rapid.Int64Range(0, 30).Draw(t, "n")}
			next.hold = q.Hold(next.scope)
			if next.hold.Grow(next.n) == nil {
				held = append(held, next)
			}
			held = slices.DeleteFunc(held, func(h taken) bool {
				gone := rapid.IntRange(0, 3).Draw(t, "release") == 0
				if gone {
					h.hold.Release()
				}
				return gone
			})
			sums := map[core.Tenant]int64{}
			for _, h := range held {
				sums[core.Tenant{}] += h.n
				sums[core.Tenant{Owner: h.scope.Owner}] += h.n
				if h.scope.User != "" {
					sums[h.scope] += h.n
				}
			}
			if sums[core.Tenant{}] > 100 || sums[ann] > 60 || sums[eve] > 30 || sums[kim] > 30 || sums[core.Tenant{}] != q.Used() {
				t.Fatalf("got %v held and %d counted, want no more than the shares", sums, q.Used())
			}
		}
		for _, h := range held {
			h.hold.Release()
		}
		if q.Used() != 0 {
			t.Fatalf("got %d held in the end, want 0", q.Used())
		}
	})
}

// Everybody has a bucket of their own; who has emptied it is told when to come back, and
// is let in then.
func TestBuckets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := quota.NewBuckets(2, 3)
		for i := range 3 {
			if wait := b.Take("ann"); wait != 0 {
				t.Fatalf("request %d: got %v to wait, want none", i, wait)
			}
		}
		wait := b.Take("ann")
		must.True(t, wait >= 500*time.Millisecond && wait <= 510*time.Millisecond, "got %v to wait, want half a second", wait)
		compare.Equal(t, "others have to wait, want them let in", 0, b.Take("bob"))
		time.Sleep(wait)
		compare.True(t, b.Take("ann") == 0 && b.Take("ann") != 0, "got none or several tokens after the time, want one")
	})
}

// There is a bounded number of buckets, whoever comes; no limit holds nobody up.
func TestBucketsAreBounded(t *testing.T) {
	t.Parallel()
	b := quota.NewBuckets(0.001, 1)
	for i := range 25_000 {
		b.Take(fmt.Sprint(i))
	}
	n := b.Len()
	compare.True(t, n != 0 && n <= 10_000, "got %d buckets, want at most 10,000", n)
	none := quota.NewBuckets(0, 5)
	for range 100 {
		must.True(t, none.Take("ann") == 0, "got a wait without a limit")
	}
}

// What is stored is read once a minute, and whenever the limit is reached: deleted sessions make room
// immediately.
func TestStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stored, reads := map[core.Tenant]int64{eve: 50, ann: 60}, 0
		full := core.Errorf(core.ErrUnavailable, "the disk is full")
		var disk error
		s := quota.NewStored(quota.StoredLimits{User: 100, Owner: 200, CheckDisk: func() error { return disk }, Sum: func(_ context.Context, of core.Tenant) (int64, error) {
			reads++
			return stored[of], nil
		}})
		want := func(tenant core.Tenant, more int64, admitted bool, wantReads int) {
			t.Helper()
			err := s.Admit(t.Context(), tenant, more)
			var shown *core.Error
			if (err == nil) != admitted || err != nil && (!errors.As(err, &shown) || shown.Code != quota.CodeStorageFull || !errors.Is(err, core.ErrTooLarge)) || reads != wantReads {
				t.Errorf("%v, %d: got %v after %d reads, want admitted: %t, %d reads", tenant, more, err, reads, admitted, wantReads)
			}
		}
		want(eve, 30, true, 2) // the sums of the user and of the owner
		want(eve, 20, true, 2)
		stored[eve] = 95 // as of the database
		time.Sleep(time.Nanosecond)
		want(eve, 10, false, 3)
		stored[eve] = 0
		time.Sleep(time.Nanosecond)
		want(eve, 10, true, 4)
		stored[ann] = 199
		time.Sleep(2 * time.Minute)
		want(ann, 1, true, 5)
		want(kim, 1, false, 6) // of the owner, whose sum was just read
		disk = full
		compare.Error(t, "for a copy", full, s.AdmitCopy(t.Context(), eve, 0))
		want(bob, 1, true, 7)
		compare.Error(t, "without limits", nil, (*quota.Stored)(nil).AdmitCopy(t.Context(), eve, 1<<60))
	})
}
