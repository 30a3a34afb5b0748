package events_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/app/events"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// counted counts the questions for several sessions.
type counted struct {
	*memory
	asked, most int // guarded by memory.mu
}

func (c *counted) LastOf(ctx context.Context, ids []core.SessionID) (map[core.SessionID]int64, error) {
	c.mu.Lock()
	c.asked++
	c.most = max(c.most, len(ids))
	c.mu.Unlock()
	return c.memory.LastOf(ctx, ids)
}

func (c *counted) Last(context.Context, core.Tenant, core.SessionID) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int64(len(c.events)), nil
}

// Thousands of watchers of idle sessions share their queries of the store; they still find what
// the bus lost.
func TestWatchersLookTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &counted{memory: &memory{}}
		feed := events.New(events.NewLocal(0), store, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		const many = 2000
		var watchers sync.WaitGroup
		got := make([]int, many)
		for i := range many {
			watchers.Go(func() {
				for _, err := range feed.Watch(ctx, tenant, session, core.Cursor{}) {
					if err != nil {
						return // the test is over
					}
					got[i]++
				}
			})
		}
		time.Sleep(time.Minute)
		store.mu.Lock()
		compare.True(t, store.asked != 0 && store.asked <= 8, "got %d questions in a minute of %d watchers, want one for all each 15 s", store.asked, many)
		store.mu.Unlock()
		lost := store.commit(started())
		time.Sleep(16 * time.Second)
		cancel()
		watchers.Wait()
		for i, n := range got {
			must.True(t, n == int(lost.Seq), "watcher %d got %d events, want the one that the bus lost", i, n)
		}
	})
}

// A lookup that started before an event arrived is outdated, but no reason for a resync.
func TestLookThatIsOvertaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &held{counted: &counted{memory: &memory{}}, let: make(chan struct{})}
		feed := events.New(events.NewLocal(0), store, slog.New(slog.DiscardHandler))
		w := startWatch(t, feed, core.Cursor{})
		first := make(chan core.Event)
		go func() {
			for range 2 {
				e, _, _ := w.next()
				first <- e
			}
		}()
		time.Sleep(16 * time.Second) // it looks, and has its answer, and does not get it yet
		e := store.commit(started())
		feed.Publish(t.Context(), []core.Event{e})
		if got := <-first; got.Seq != e.Seq {
			t.Fatalf("got %+v, want the event that came meanwhile", got)
		}
		close(store.let)
		time.Sleep(time.Second)
		next := store.commit(started())
		feed.Publish(t.Context(), []core.Event{next})
		compare.Equal(t, "the next event", next.Seq, (<-first).Seq)
	})
}

// held answers looks with what it saw before let is closed.
type held struct {
	*counted
	let chan struct{}
}

func (h *held) LastOf(ctx context.Context, ids []core.SessionID) (map[core.SessionID]int64, error) {
	newest, err := h.counted.LastOf(ctx, ids)
	<-h.let
	return newest, err
}
