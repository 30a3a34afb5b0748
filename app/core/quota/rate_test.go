package quota_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core/quota"
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
		if wait < 500*time.Millisecond || wait > 510*time.Millisecond {
			t.Fatalf("got %v to wait, want half a second", wait)
		}
		if b.Take("bob") != 0 {
			t.Error("others have to wait, want them let in")
		}
		time.Sleep(wait)
		if b.Take("ann") != 0 || b.Take("ann") == 0 {
			t.Error("got none or several tokens after the time, want one")
		}
	})
}

// There is a bounded number of buckets, whoever comes; no limit holds nobody up.
func TestBucketsAreBounded(t *testing.T) {
	t.Parallel()
	b := quota.NewBuckets(0.001, 1)
	for i := range 25_000 {
		b.Take(fmt.Sprint(i))
	}
	if n := b.Len(); n == 0 || n > 10_000 {
		t.Errorf("got %d buckets, want at most 10,000", n)
	}
	none := quota.NewBuckets(0, 5)
	for range 100 {
		if none.Take("ann") != 0 {
			t.Fatal("got a wait without a limit")
		}
	}
}
