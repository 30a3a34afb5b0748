package events_test

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/app/events"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// lines are the first lines of a log.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	select {
	case l <- string(p):
	default:
	}
	return len(p), nil
}

// TestSignals: every process hears every signal, and of what it cannot read that there
// may be work; a closed bus is logged.
func TestSignals(t *testing.T) {
	onBuses(t, 0, func(t *testing.T, publish, listen closer) {
		sender := events.NewSignals(publish, slog.New(slog.DiscardHandler))
		log := make(lines, 1)
		receiver := events.NewSignals(listen, slog.New(slog.NewTextHandler(log, nil)))
		heard, done := make(chan core.Wakeup, 10_000), make(chan struct{})
		go func() {
			defer close(done)
			receiver.Listen(t.Context(), func(signal core.Wakeup) { heard <- signal })
		}()
		t.Cleanup(func() { <-done })
		again := time.NewTicker(5 * time.Millisecond)
		defer again.Stop()
		late := time.After(patience)
		for got := (core.Wakeup{}); got.Cancel == ""; {
			must.Do(t, publish.Publish("work", []byte("unreadable")))
			sender.Send(t.Context(), core.Wakeup{Cancel: "r1"})
			select {
			case got = <-heard:
				if got != (core.Wakeup{Cancel: "r1"}) && got != (core.Wakeup{Free: true}) {
					t.Errorf("got %+v, want the cancel, or that there may be work", got)
				}
			case <-again.C:
			case <-late:
				t.Fatal("nothing is heard")
			}
		}
		listen.Close()
		select {
		case got := <-log:
			if !strings.Contains(got, "not received") || !strings.Contains(got, events.ErrClosed.Error()) {
				t.Errorf("got %q in the log, want %v", got, events.ErrClosed)
			}
		case <-late:
			t.Error("a closed bus is not logged")
		}
	})
}

// teller is an observer that remembers. Safe for concurrent use.
type teller struct {
	core.NoObserver
	mu      sync.Mutex
	late    []time.Duration
	open    int
	ends    []error
	resyncs int
	found   int
}

func (o *teller) FanOut(late time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.late = append(o.late, late)
}

func (o *teller) Watching() func(error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open++
	return func(err error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.open--
		o.ends = append(o.ends, err)
	}
}

func (o *teller) Count(counter core.Counter, n int, _ ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if counter == core.CountResyncs {
		o.resyncs += n
	} else {
		o.found += n
	}
}

// The observer receives the delay of events, dropped watchers, events that the bus did not
// deliver, and resyncs.
func TestObserverHearsOfTheFeed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		feed, store, _ := newFeed(t, 2)
		told := &teller{}
		feed.Observe(told)
		first := store.commit(started())
		w := startWatch(t, feed, core.Cursor{})
		w.want(t, first)
		e := store.commit(started())
		time.Sleep(3 * time.Second)
		feed.Publish(t.Context(), []core.Event{e})
		w.want(t, e)
		if len(told.late) != 1 || told.late[0] < 3*time.Second || told.open != 1 || told.found != 0 {
			t.Errorf("got %+v, want one event that was 3 s late, to one watcher", told)
		}
		lost := store.commit(started())
		next := store.commit(started())
		feed.Publish(t.Context(), []core.Event{next})
		w.want(t, lost, next)
		w.want(t, store.commit(started())) // of which nobody tells
		for range 4 {
			feed.Publish(t.Context(), []core.Event{store.commit(started())})
		}
		for {
			if _, err, _ := w.next(); err != nil {
				break
			}
		}
		if len(told.ends) != 1 || !errors.Is(told.ends[0], events.ErrSlow) || told.open != 0 {
			t.Errorf("got ends %v and %d open, want the one that was dropped", told.ends, told.open)
		}
		compare.Equal(t, "events found in the store: want the three that the bus did not bring", 3, told.found)
		again := startWatch(t, feed, core.Cursor{After: 1000})
		again.want(t, event(core.EventResync, nil))
		compare.Equal(t, "resyncs", 1, told.resyncs)
	})
}
