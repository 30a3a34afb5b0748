package quota_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/quota"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

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
