package events_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/quota"
	"bobbin/app/events"
	"bobbin/tests/compare"
)

// readSeqs pulls the events of the numbers from first to last.
func readSeqs(t *testing.T, w *watch, first, last int64) {
	t.Helper()
	for seq := first; seq <= last; seq++ {
		if e, err, _ := w.next(); err != nil || e.Seq != seq {
			t.Fatalf("got event %d and error %v, want event %d", e.Seq, err, seq)
		}
	}
}

// What is replayed to readers who stall is bounded: by bytes for each of them, and by the
// memory for all. A reader that gets none is told to reconnect, and the live feeds of others
// continue.
func TestReplaysInBytes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		feed, store, _ := newFeed(t, 0)
		memory := quota.New(quota.Limits{Total: 2 << 20, Owner: 2 << 20, User: 2 << 20, What: "memory"})
		feed.Limit(memory)
		for range 10 {
			store.commit(created("m1", strings.Repeat("x", 400_000)))
		}
		first, second := startWatch(t, feed, core.Cursor{}), startWatch(t, feed, core.Cursor{})
		readSeqs(t, first, 1, 1) // and reads on later
		readSeqs(t, second, 1, 1)
		if got := memory.Used(); got < 1_600_000 || got > 2<<20 {
			t.Errorf("got %d bytes held for two readers, want what two pages of at most 1 MiB have", got)
		}
		live := startWatch(t, feed, core.Cursor{Live: true})
		go func() {
			synctest.Wait() // until it follows: what came before is not for it
			feed.Publish(t.Context(), []core.Event{store.commit(started())})
		}()
		if e, err, _ := live.next(); err != nil || e.Seq != 11 {
			t.Errorf("got event %d, %v for who wants no replay, want the new one", e.Seq, err)
		}
		begin, refused := time.Now(), make(chan error)
		go func() {
			for _, err := range feed.Watch(t.Context(), tenant, session, core.Cursor{}) {
				refused <- err
			}
		}()
		err := <-refused
		compare.Equal(t, "one too many: refused after 10 s", []any{true, 10 * time.Second}, []any{errors.Is(err, core.ErrUnavailable), time.Since(begin)})
		first.stop()
		readSeqs(t, second, 2, 11)
		readSeqs(t, startWatch(t, feed, core.Cursor{}), 1, 11)
		second.stop()
	})
	synctest.Test(t, func(t *testing.T) { // a reader that leaves gives everything back
		feed, store, _ := newFeed(t, 0)
		memory := quota.New(quota.Limits{Total: 2 << 20, Owner: 2 << 20, User: 2 << 20})
		feed.Limit(memory)
		store.commit(created("m1", strings.Repeat("x", 3<<20))) // alone larger than a page
		w := startWatch(t, feed, core.Cursor{})
		readSeqs(t, w, 1, 1)
		if memory.Used() == 0 {
			t.Error("got nothing held while it reads")
		}
		w.stop()
		compare.Equal(t, "bytes held after the reader left", 0, memory.Used())
	})
}

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
		compare.Error(t, "last: want that the time is over", context.DeadlineExceeded, last)
		if took := time.Since(began); took > time.Minute {
			t.Errorf("got the error after %s of this test's clock", took)
		}
	})
}
