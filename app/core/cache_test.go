package core_test

import (
	"testing"

	"bobbin/app/core"
)

// A cache is cleared when it is full.
func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	c := core.NewCache[int, int](10)
	for i := range 11 {
		c.Set(i, i)
	}
	if _, first := c.Get(0); first {
		t.Error("got the first of eleven in a cache of ten")
	}
	if got, last := c.Get(10); !last || got != 10 {
		t.Errorf("the last: got %d, %v, want 10", got, last)
	}
}
