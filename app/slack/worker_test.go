package slack

import (
	"errors"
	"testing"
	"time"

	"bobbin/app/core"
)

// An item that fails is given up after an hour, and immediately if it can never succeed. One that
// waits for a run to end is not: a run may wait for a person for weeks.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err    error
		age    time.Duration
		wait   time.Duration
		giveUp bool
	}{
		"a run is active":           {waitError{runWait}, 0, runWait, false},
		"a run waits for weeks":     {waitError{runWait}, 30 * 24 * time.Hour, maxRetry, false},
		"an error":                  {errors.New("no connection"), 0, minRetry, false},
		"an error for two hours":    {errors.New("no connection"), 2 * time.Hour, minRetry, true},
		"an error that will remain": {core.Errorf(core.ErrInvalid, "too long"), 0, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wait, giveUp := retryAfter(c.err, core.SlackItem{Attempts: 1, CreatedAt: time.Now().Add(-c.age)})
			if wait != c.wait || giveUp != c.giveUp {
				t.Errorf("got %s, given up: %v, want %s, %v", wait, giveUp, c.wait, c.giveUp)
			}
		})
	}
}
