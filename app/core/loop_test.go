package core_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
)

// A loop calls immediately, after its pause, or when it is woken, and ends with its context.
func TestRepeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		begin, wake, ended := time.Now(), make(chan struct{}), make(chan error)
		var calls []time.Duration
		go func() {
			ended <- core.Repeat(ctx, wake, func(context.Context) time.Duration {
				calls = append(calls, time.Since(begin))
				return time.Minute
			})
		}()
		time.Sleep(90 * time.Second)
		wake <- struct{}{}
		synctest.Wait()
		stop()
		if err := <-ended; err != nil || len(calls) != 3 || calls[0] != 0 || calls[1] != time.Minute || calls[2] != 90*time.Second {
			t.Errorf("got calls after %v, %v, want after 0, 60 and 90 s", calls, err)
		}
	})
}

// What takes a part of the interval does not delay the next call; what takes longer is called again
// immediately.
func TestEvery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 200*time.Second)
		defer stop()
		begin := time.Now()
		var calls []time.Duration
		err := core.Every(ctx, time.Minute, func(context.Context) {
			if calls = append(calls, time.Since(begin)); len(calls) == 2 {
				time.Sleep(90 * time.Second)
			}
			time.Sleep(time.Second)
		})
		if err != nil || len(calls) != 3 || calls[1] != time.Minute || calls[2] != 151*time.Second {
			t.Errorf("got calls after %v, %v, want after 0, 60 and 151 s", calls, err)
		}
	})
}
