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
	"bobbin/tests/compare"
	"bobbin/tests/must"
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
			compare.Equal(t, fmt.Sprintf("%s: events of all, kim, eve and another owner", what), want, got)
		}
		first := []string{"resync<nil>"}
		wait("at the beginning", first, first, first, first)
		change("kim", "a", "b", "a")
		change("", "c", "temporary", "gone")
		wait("changes", []string{"a 1", "b 1", "c 1", "gone removed"}, []string{"a 1", "b 1"}, nil, nil)
		store.set(func() {
			compare.Equal(t, "reads of the store: want one for each reader", 2, store.reads)
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
		compare.True(t, slices.Contains(got, "resync<nil>") && len(got) <= 101, "got %d events of 600 sessions, want a resync and the rest", len(got))
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
			compare.Equal(t, what, want, arrived(got))
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

// Every watcher hears who begins to speak before the first piece of what is said, also one
// that joins in the middle, and counts as JavaScript does.
func TestMessageStarted(t *testing.T) {
	t.Parallel()
	feed, store, _ := newFeed(t, 0)
	first := store.commit(started())
	piece := func(id core.MessageID, offset, utf16 int, text string) core.Event {
		return event(core.EventMessageDelta, core.DeltaData{MessageID: id, ParentID: "q", Attempt: 1, Offset: offset, OffsetUTF16: utf16, Text: text})
	}
	early := watchAll(t, feed, core.Cursor{})
	early.wantType(t, first.Type)
	feed.Delta(t.Context(), piece("m1", 0, 0, "👋🏽 "))
	early.wantStarted(t, "m1")
	early.wantText(t, 0, "👋🏽 ")
	feed.Delta(t.Context(), piece("m1", 9, 5, "Grüß"))
	early.wantText(t, 5, "Grüß")

	late := watchAll(t, feed, core.Cursor{After: first.Seq})
	late.wantStarted(t, "m1")
	late.wantText(t, 0, "👋🏽 Grüß")
	feed.Delta(t.Context(), piece("m1", 13, 8, "ß Gott")) // the first character is known
	for _, w := range []*watch{early, late} {
		w.wantText(t, 9, " Gott")
	}

	discarded := store.commit(event(core.EventMessageDiscarded, core.DiscardedData{MessageID: "m1"}))
	feed.Publish(t.Context(), []core.Event{discarded})
	feed.Delta(t.Context(), piece("m2", 0, 0, "anew"))
	for _, w := range []*watch{early, late} {
		w.wantType(t, core.EventMessageDiscarded)
		w.wantStarted(t, "m2")
		w.wantText(t, 0, "anew")
	}
}

// A watcher that joins is told once which node the run executes, but not a node that has ended,
// as when the run continues in another process.
func TestNodeOfARunAtWork(t *testing.T) {
	t.Parallel()
	feed, store, _ := newFeed(t, 0)
	first := store.commit(started())
	node := func(name string, step int) core.Event {
		return event(core.EventNodeStarted, core.NodeData{Node: name, Step: step})
	}
	feed.Delta(t.Context(), node("process_message", 1))
	feed.Delta(t.Context(), node("llm_node", 4))
	w := watchAll(t, feed, core.Cursor{})
	w.wantType(t, first.Type)
	e := w.wantType(t, core.EventNodeStarted)
	compare.True(t, e.Data.(core.NodeData).Node == "llm_node" && e.Seq == 0, "got %+v with number %d, want the node that the run is in", e.Data, e.Seq)
	feed.Delta(t.Context(), node("tool_node", 5))
	compare.Equal(t, "want the next node, and none twice", "tool_node", w.wantType(t, core.EventNodeStarted).Data.(core.NodeData).Node)
	feed.Delta(t.Context(), event(core.EventNodeFinished, core.NodeData{Node: "tool_node", Step: 5}))
	w.wantType(t, core.EventNodeFinished)
	last := store.commit(event(core.EventRunSucceeded, core.RunData{}))
	feed.Publish(t.Context(), []core.Event{last})
	w.wantType(t, last.Type)
	late := watchAll(t, feed, core.Cursor{After: last.Seq})
	next := store.commit(event(core.EventRunStarted, core.RunData{}))
	feed.Publish(t.Context(), []core.Event{next})
	compare.Equal(t, "the next event: want none of the run that has ended", next.Seq, late.wantType(t, core.EventRunStarted).Seq)
}

// wantType pulls one event of that type.
func (w *watch) wantType(t *testing.T, kind core.EventType) core.Event {
	t.Helper()
	e, err, _ := w.next()
	must.True(t, err == nil && e.Type == kind, "got %s %+v, %v, want %s", e.Type, e.Data, err, kind)
	return e
}

func (w *watch) wantStarted(t *testing.T, id core.MessageID) {
	t.Helper()
	e := w.wantType(t, core.EventMessageStarted)
	got := e.Data.(core.StartedData)
	diff := cmp.Diff(core.StartedData{MessageID: id, Role: core.RoleAssistant, ParentID: "q", Attempt: 1}, got)
	compare.True(t, diff == "" && e.RunID != "" && e.Seq == 0, "message.started of run %q (-want +got):\n%s", e.RunID, diff)
}

func (w *watch) wantText(t *testing.T, utf16 int, text string) {
	t.Helper()
	got := w.wantType(t, core.EventMessageDelta).Data.(core.DeltaData)
	compare.Equal(t, "draft", []any{utf16, text}, []any{got.OffsetUTF16, got.Text})
}

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
