package events_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/events"
)

// headStore has a head of each session that is not gone.
type headStore struct {
	core.EventStore

	mu      sync.Mutex
	reads   int   // guarded by mu
	version int64 // guarded by mu
}

// set changes the store.
func (s *headStore) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *headStore) Heads(_ context.Context, _ core.Tenant, sessions []core.SessionID) (heads []core.SessionHead, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	for _, id := range sessions {
		if id != "gone" {
			heads = append(heads, core.SessionHead{ID: id, LastEvent: s.version, Temporary: id == "temporary"})
		}
	}
	return heads, nil
}

// heads watches until the test ends; the events arrive in the channel.
func heads(t *testing.T, f *events.Feed, tenant core.Tenant) <-chan string {
	t.Helper()
	got := make(chan string, 2000)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for e, err := range f.WatchHeads(ctx, tenant) {
			switch d := e.Data.(type) {
			case core.SessionHead:
				got <- fmt.Sprint(e.SessionID, " ", d.LastEvent)
			case core.RemovedHead:
				got <- fmt.Sprint(e.SessionID, " removed")
			default:
				got <- fmt.Sprint(e.Type, err)
			}
		}
	}()
	synctest.Wait()
	return got
}

// arrived returns what has arrived.
func arrived(got <-chan string) (all []string) {
	time.Sleep(time.Second)
	synctest.Wait()
	for len(got) > 0 {
		all = append(all, <-got)
	}
	slices.Sort(all)
	return all
}

// A reader gets a resync, then each session that changed once, however often it did within a
// short time; users only their own; more sessions than it can hold are a resync.
func TestHeads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bus, store := events.NewLocal(0), &headStore{version: 1}
		defer bus.Close()
		f := events.New(bus, store, slog.New(slog.DiscardHandler))
		all, kims, eves := heads(t, f, core.Tenant{Owner: "ann"}), heads(t, f, core.Tenant{Owner: "ann", User: "kim"}), heads(t, f, core.Tenant{Owner: "ann", User: "eve"})
		others := heads(t, f, core.Tenant{Owner: "bob"})
		change := func(user string, ids ...core.SessionID) {
			for _, id := range ids {
				e := core.NewEvent(id, "", core.EventSessionUpdated, nil)
				e.Owner = core.EventOwner{Owner: "ann", User: user}
				f.Publish(t.Context(), []core.Event{e, e})
			}
		}
		wait := func(what string, want ...[]string) {
			t.Helper()
			var got [][]string
			for _, c := range []<-chan string{all, kims, eves, others} {
				got = append(got, arrived(c))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: events of all, kim, eve and another owner (-want +got):\n%s", what, diff)
			}
		}
		first := []string{"resync<nil>"}
		wait("at the beginning", first, first, first, first)
		change("kim", "a", "b", "a")
		change("", "c", "temporary", "gone")
		wait("changes", []string{"a 1", "b 1", "c 1", "gone removed"}, []string{"a 1", "b 1"}, nil, nil)
		store.set(func() {
			if store.reads != 2 {
				t.Errorf("got %d reads of the store, want one for each reader", store.reads)
			}
		})
		change("kim", "a")
		wait("nothing new", nil, nil, nil, nil)
		store.set(func() { store.version++ })
		change("kim", "a")
		wait("something new", []string{"a 2"}, []string{"a 2"}, nil, nil)
		for i := range 600 {
			change("", core.SessionID(fmt.Sprint("s", i)))
			synctest.Wait()
		}
		got := arrived(all)
		if !slices.Contains(got, "resync<nil>") || len(got) > 101 {
			t.Errorf("got %d events of 600 sessions, want a resync and the rest", len(got))
		}
		time.Sleep(time.Hour)
		wait("an hour later", nil, nil, nil, nil)
	})
}

// Between processes messages may be lost: the list is to be loaded anew when there is a sign of
// that, and every five minutes.
func TestHeadsOfOtherProcesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bus, store := events.NewLocal(0), &headStore{version: 1}
		defer bus.Close()
		f := events.NewShared(bus, store, noRuns{}, slog.New(slog.DiscardHandler))
		got := heads(t, f, core.Tenant{Owner: "ann"})
		if len(got) > 0 {
			t.Errorf("got %q at once, want it when the others know of the reader", <-got)
		}
		want := func(what string, want ...string) {
			t.Helper()
			if diff := cmp.Diff(want, arrived(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
		want("at the beginning", "resync<nil>")
		time.Sleep(4 * time.Minute)
		want("without a sign")
		time.Sleep(time.Minute)
		want("five minutes later", "resync<nil>")
		bus.SignalLoss()
		want("after a loss", "resync<nil>")
	})
}

type noRuns struct{ core.RunStore }
