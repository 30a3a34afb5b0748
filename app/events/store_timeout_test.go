package events_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/app/events"
)

// silentStore has answered once and does so no more, as behind a network that stalls.
type silentStore struct{ memory }

func (s *silentStore) Last(ctx context.Context, _ core.Tenant, _ core.SessionID) (int64, error) {
	if s.reads++; s.reads == 1 {
		return 0, nil
	}
	<-ctx.Done()
	return 0, ctx.Err()
}

func (s *silentStore) LastOf(ctx context.Context, _ []core.SessionID) (map[core.SessionID]int64, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A watcher does not hang in a process whose database does not respond: it gets an error and
// reconnects to another process.
func TestSilentStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bus := events.NewLocal(8)
		defer bus.Close()
		f := events.New(bus, &silentStore{}, slog.New(slog.DiscardHandler))
		began := time.Now()
		var last error
		for _, err := range f.Watch(t.Context(), tenant, session, core.Cursor{}) {
			last = err
		}
		if !errors.Is(last, context.DeadlineExceeded) {
			t.Errorf("got %v, want that the time is over", last)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("got the error after %s of this test's clock", took)
		}
	})
}
