package commit_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/app/db/commit"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

const here core.SessionID = "01920000-0000-7000-8000-000000000001"

// Writers of a session come in one at a time, in the order of arrival.
func TestSessionTurns(t *testing.T) {
	t.Parallel()
	turns := commit.Of(dbtest.SQLite(t).Gorm).Turns
	synctest.Test(t, func(t *testing.T) {
		release := must.Get(turns.Take(t.Context(), here))(t)
		var order []int // guarded by the turn
		for i := range 5 {
			go func() {
				release := must.Get(turns.Take(t.Context(), here))(t)
				order = append(order, i)
				release()
			}()
			synctest.Wait() // it stands in the queue
		}
		release()
		synctest.Wait()
		compare.Equal(t, "order", []int{0, 1, 2, 3, 4}, order)
	})
}

// Waiting is bounded in time and in the number of writers.
func TestSessionTurnsAreBounded(t *testing.T) {
	t.Parallel()
	turns := commit.Of(dbtest.SQLite(t).Gorm).Turns
	synctest.Test(t, func(t *testing.T) {
		release := must.Get(turns.Take(t.Context(), here))(t)
		var late, canceled, refused int
		var mu sync.Mutex
		gone, cancel := context.WithCancel(t.Context())
		began := time.Now()
		for i := range 300 {
			ctx := t.Context()
			if i == 0 {
				ctx = gone
			}
			go func() {
				_, err := turns.Take(ctx, here)
				mu.Lock()
				defer mu.Unlock()
				switch waited := time.Since(began); {
				case errors.Is(err, context.Canceled):
					canceled++
				case core.IsSessionBusy(err) && waited == 0:
					refused++
				case core.IsSessionBusy(err) && waited == 10*time.Second:
					late++
				default:
					t.Errorf("after %v: %v", waited, err)
				}
			}()
			synctest.Wait()
		}
		cancel()
		time.Sleep(11 * time.Second) // of the bubble's clock
		synctest.Wait()
		compare.Equal(t, "canceled, gave up, refused immediately", []any{1, 255, 44}, []any{canceled, late, refused})
		release()
		again := must.Get(turns.Take(t.Context(), here))(t)
		again()
	})
}
