package repositories_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"bobbin/app/db"
	"bobbin/tests/dbtest"
)

// Of several concurrent holders exactly one gets the lease.
func TestConcurrentLeasesOneWins(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		var won atomic.Int32
		race(racers, func(i int) {
			got, err := s.sessions.LeaseSummary(t.Context(), ann(), id, fmt.Sprint(i), time.Minute)
			if err != nil {
				t.Errorf("racer %d: %v", i, err)
			}
			if got.OK() {
				won.Add(1)
			}
		})
		if won.Load() != 1 {
			t.Errorf("got %d holders, want 1", won.Load())
		}
	})
}
