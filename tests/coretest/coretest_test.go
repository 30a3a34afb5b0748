package coretest_test

import (
	"testing"

	"bobbin/tests/coretest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	coretest.TestStores(t, func(t *testing.T) coretest.Stores {
		t.Helper()
		store := coretest.New()
		t.Cleanup(func() {
			for _, broken := range store.Check() {
				t.Errorf("broken guarantee: %s", broken)
			}
		})
		return store.Stores()
	})
}
