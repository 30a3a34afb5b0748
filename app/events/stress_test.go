package events_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/quota"
	"bobbin/app/events"
	"bobbin/tests/compare"
	"bobbin/tests/seed"
)

// S1, no gap, no repetition: two tabs see the same events in the same order.
// Watchers join at random moments with random ids while a run talks and other
// writers publish out of order, or not at all.
func TestWatchersSeeEverythingOnceInOrder(t *testing.T) {
	t.Parallel()
	seed.SkipInCI(t)
	for _, c := range []struct {
		name   string
		noise  int  // writers that publish out of order and lose messages
		buffer int  // of the bus
		exact  bool // the text of a message is either missing or whole when it is finished
	}{{"one orderly writer", 0, 0, true}, {"many disorderly writers", 4, 0, false}, {"a small buffer drops readers", 4, 16, false}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for n := range uint64(5) {
				stress(t, c.noise, c.buffer, c.exact, n*1000)
			}
		})
	}
}

func stress(t *testing.T, noise, buffer int, exact bool, stream uint64) {
	t.Helper()
	feed, store, _ := newFeed(t, buffer)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var writers, readers sync.WaitGroup
	writers.Go(func() { talk(ctx, feed, store, seed.Rand(t, stream+1)) })
	for i := range noise {
		writers.Go(func() { murmur(ctx, feed, store, seed.Rand(t, stream+uint64(i)+2)) })
	}
	for i := range 8 {
		readers.Go(func() {
			r := seed.Rand(t, stream+uint64(i)+100)
			compare.Error(t, fmt.Sprintf("stream %d, reader %d", stream, i), nil, read(ctx, feed, store, r, exact))
		})
	}
	writers.Wait()
	feed.Publish(ctx, []core.Event{store.commit(event(core.EventSessionUpdated, nil))})
	readers.Wait()
}

// talk is a run's goroutine: texts, each followed by its message.
func talk(ctx context.Context, feed *events.Feed, store *memory, r *rand.Rand) {
	for i := range 60 {
		id := core.MessageID(fmt.Sprint("m", i))
		var content strings.Builder
		for range r.IntN(30) {
			piece := strings.Repeat("ä", r.IntN(5)) + fmt.Sprint(r.IntN(10))
			feed.Delta(ctx, textDelta(id, content.Len(), piece))
			content.WriteString(piece)
			if r.IntN(8) == 0 {
				runtime.Gosched()
			}
		}
		feed.Publish(ctx, []core.Event{store.commit(created(id, content.String()))})
	}
}

// murmur commits events and publishes them late, in any order; some never.
func murmur(ctx context.Context, feed *events.Feed, store *memory, r *rand.Rand) {
	for range 60 {
		var batch []core.Event
		for range 1 + r.IntN(4) {
			batch = append(batch, store.commit(event(core.EventContextWarning, nil)))
			runtime.Gosched()
		}
		r.Shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
		feed.Publish(ctx, batch[r.IntN(2):])
	}
}

// read watches until the last event and checks everything it gets. A reader that
// is dropped, or leaves, reconnects with its last id.
func read(ctx context.Context, feed *events.Feed, store *memory, r *rand.Rand, exact bool) error {
	for range r.IntN(500) {
		runtime.Gosched()
	}
	last, err := store.Last(ctx, tenant, session)
	if err != nil {
		return err
	}
	c := &checker{seen: r.Int64N(max(last, 1)), exact: exact} // before the last event, which may be there already
	for {
		c.texts = map[core.MessageID]string{}
		for e, err := range feed.Watch(ctx, tenant, session, core.Cursor{After: c.seen}) {
			if errors.Is(err, events.ErrSlow) {
				break
			}
			if err == nil {
				err = c.check(e)
			}
			if err != nil || e.Type == core.EventSessionUpdated {
				return err
			}
			if r.IntN(400) == 0 {
				break
			}
		}
	}
}

// checker is what a reader knows.
type checker struct {
	seen  int64
	exact bool
	texts map[core.MessageID]string
}

func (c *checker) check(e core.Event) error {
	if e.Seq > 0 {
		if e.Seq != c.seen+1 {
			return fmt.Errorf("got event %d after %d", e.Seq, c.seen)
		}
		c.seen = e.Seq
	}
	switch e.Type {
	case core.EventMessageDelta:
		return c.delta(e)
	case core.EventMessageCreated:
		d := e.Data.(core.MessageData)
		got, want := c.texts[d.Message.ID], d.Message.Content
		if !strings.HasPrefix(want, got) || c.exact && got != "" && got != want {
			return fmt.Errorf("message %s: got text %q, want %q", d.Message.ID, got, want)
		}
		c.texts[d.Message.ID] = "finished"
	}
	return nil
}

func (c *checker) delta(e core.Event) error {
	d := e.Data.(core.DeltaData)
	text := c.texts[d.MessageID]
	if d.Offset != len(text) || d.Text == "" || text == "finished" {
		return fmt.Errorf("message %s: got %q at %d, want the offset %d", d.MessageID, d.Text, d.Offset, len(text))
	}
	c.texts[d.MessageID] = text + d.Text
	return nil
}

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
		got := memory.Used()
		compare.True(t, got >= 1_600_000 && got <= 2<<20, "got %d bytes held for two readers, want what two pages of at most 1 MiB have", got)
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
		compare.True(t, memory.Used() != 0, "got nothing held while it reads")
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
		took := time.Since(began)
		compare.True(t, took <= time.Minute, "got the error after %s of this test's clock", took)
	})
}
