package core_test

import (
	"testing"

	"bobbin/app/core"
)

// A cache that is full is cleared.
func TestCache(t *testing.T) {
	t.Parallel()
	c := core.NewCache[int, string](2)
	c.Set(1, "a")
	c.Set(2, "b")
	c.Delete(1)
	if _, ok := c.Get(1); ok {
		t.Error("got a value that was deleted")
	}
	c.Set(1, "c")
	c.Set(3, "d")
	_, one := c.Get(1)
	if got, ok := c.Get(3); got != "d" || !ok || one {
		t.Errorf("got %q, %v, and %v for another, want the newest alone", got, ok, one)
	}
}
