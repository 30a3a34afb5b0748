package events_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
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

const session = core.SessionID("s1")

var tenant = core.Tenant{Owner: "ann"}

// memory is an event store: commit numbers an event as a transaction does.
type memory struct {
	core.EventStore // the methods that no test calls

	mu     sync.Mutex
	events []core.Event // guarded by mu; events[i].Seq is i+1
	kept   int          // guarded by mu: the first that is still kept
	reads  int          // guarded by mu
	err    error        // guarded by mu
}

func (m *memory) commit(e core.Event) core.Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	e.Seq = int64(len(m.events) + 1)
	if raw, err := json.Marshal(e.Data); err == nil {
		e.Size = len(raw)
	}
	m.events = append(m.events, e)
	return e
}

func (m *memory) Page(_ context.Context, _ core.SessionID, after int64, limit int) ([]core.Event, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads++
	if m.err != nil {
		return nil, false, m.err
	}
	from := min(max(int(after), m.kept), len(m.events))
	page, bytes := []core.Event(nil), 0
	for _, e := range m.events[from:min(from+limit, len(m.events))] {
		if bytes += e.Size; bytes > core.MaxPageBytes && len(page) > 0 {
			return page, true, nil
		}
		page = append(page, e)
	}
	return page, len(page) == limit, nil
}

func (m *memory) Last(_ context.Context, s core.Tenant, id core.SessionID) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s != tenant || id != session {
		return 0, core.Errorf(core.ErrNotFound, "session %s does not exist", id)
	}
	m.reads++
	return int64(len(m.events)), m.err
}

func (m *memory) LastOf(ctx context.Context, ids []core.SessionID) (map[core.SessionID]int64, error) {
	newest := map[core.SessionID]int64{}
	for _, id := range ids {
		n, err := m.Last(ctx, tenant, id)
		if errors.Is(err, core.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		newest[id] = n
	}
	return newest, nil
}

func (m *memory) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

// drop forgets all events up to seq, as the retention does.
func (m *memory) drop(seq int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept = seq
}

func event(kind core.EventType, data any) core.Event {
	return core.NewEvent(session, "r1", kind, data)
}

func started() core.Event { return event(core.EventRunStarted, core.RunData{}) }

func created(id core.MessageID, content string) core.Event {
	return event(core.EventMessageCreated, core.MessageData{Message: core.Message{ID: id, Content: content}})
}

func textDelta(id core.MessageID, offset int, text string) core.Event {
	return event(core.EventMessageDelta, core.DeltaData{MessageID: id, Attempt: 1, Offset: offset, OffsetUTF16: offset, Text: text})
}

// watch pulls from a Watch. Its stop is called at the end of the test.
type watch struct {
	next func() (core.Event, error, bool)
	stop func()
}

func startWatch(t *testing.T, feed *events.Feed, from core.Cursor) *watch {
	t.Helper()
	w := watchAll(t, feed, from)
	all := w.next
	w.next = func() (core.Event, error, bool) {
		e, err, more := all()
		if e.Type == core.EventMessageStarted {
			return all()
		}
		return e, err, more
	}
	return w
}

// watchAll is startWatch with message.started, which comes before each text.
func watchAll(t *testing.T, feed *events.Feed, from core.Cursor) *watch {
	t.Helper()
	next, stop := iter.Pull2(feed.Watch(t.Context(), tenant, session, from))
	t.Cleanup(stop)
	return &watch{next: next, stop: stop}
}

// want pulls one event each and compares it.
func (w *watch) want(t *testing.T, want ...core.Event) {
	t.Helper()
	for i, e := range want {
		got, err, _ := w.next()
		must.True(t, err == nil, "event %d: got error %v, want %s", i, err, e.Type)
		if e.Type == core.EventResync {
			e.At, e.RunID, e.Seq = got.At, "", got.Seq
		}
		if got.Type.IsText() {
			e.At = got.At
		}
		if d := cmp.Diff(e, got); d != "" {
			t.Fatalf("event %d (-want +got):\n%s", i, d)
		}
	}
}

func (w *watch) wantErr(t *testing.T, want error) {
	t.Helper()
	e, err, _ := w.next()
	must.True(t, errors.Is(err, want), "got event %v and error %v, want error %v", e, err, want)
	if _, _, more := w.next(); more {
		t.Error("got another element after the error, want none")
	}
}

// attempt returns an attempt of the run whose events the tests publish.
func attempt(n int) core.Run { return core.Run{ID: "r1", SessionID: session, Attempt: n} }

// newFeed returns a feed of a process that executes the run.
func newFeed(t testing.TB, buffer int) (*events.Feed, *memory, *events.Local) {
	t.Helper()
	bus, store := events.NewLocal(buffer), &memory{}
	feed := events.New(bus, store, slog.New(slog.DiscardHandler))
	feed.Begin(attempt(1))
	return feed, store, bus
}

var resync = event(core.EventResync, nil)

func TestWatchLiveSkipsThePast(t *testing.T) {
	t.Parallel()
	feed, store, _ := newFeed(t, 0)
	store.commit(started())
	synctest.Test(t, func(t *testing.T) {
		feed.Delta(t.Context(), textDelta("m1", 0, "so far"))
		w := startWatch(t, feed, core.Cursor{Live: true, After: 7})
		w.want(t, textDelta("m1", 0, "so far"))
		live := store.commit(started())
		feed.Publish(t.Context(), []core.Event{live})
		w.want(t, live)
	})
}

func TestWatchResync(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		kept  int
		after int64
	}{
		{"older than the oldest kept", 3, 1},
		{"everything after it is gone", 5, 2},
		{"nothing known, beginning is gone", 2, 0},
		{"greater than the newest: another database", 0, 99},
		{"all is gone, but nothing missed", 5, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			feed, store, _ := newFeed(t, 0)
			for range 5 {
				store.commit(started())
			}
			store.drop(c.kept)
			feed.Delta(t.Context(), textDelta("m1", 0, "so far"))
			w := startWatch(t, feed, core.Cursor{After: c.after})
			if c.after != 5 {
				if e, err, _ := w.next(); err != nil || e.Type != core.EventResync || e.Seq != 5 {
					t.Fatalf("got %s %d, %v, want a resync with the number of the newest event", e.Type, e.Seq, err)
				}
			}
			w.want(t, textDelta("m1", 0, "so far"))
			live := store.commit(started())
			feed.Publish(t.Context(), []core.Event{live})
			w.want(t, live)
		})
	}
}

func TestWatchErrors(t *testing.T) {
	t.Parallel()
	fault := errors.New("disk on fire")
	stopped := errors.New("server stops")
	for _, c := range []struct {
		name string
		do   func(store *memory, bus *events.Local, cancel context.CancelCauseFunc)
		want error
	}{
		{"store", func(m *memory, _ *events.Local, _ context.CancelCauseFunc) { m.fail(fault) }, fault},
		{"context", func(_ *memory, _ *events.Local, cancel context.CancelCauseFunc) { cancel(stopped) }, stopped},
		{"bus closed", func(_ *memory, b *events.Local, _ context.CancelCauseFunc) { b.Close() }, events.ErrClosed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				feed, store, bus := newFeed(t, 0)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				next, stop := iter.Pull2(feed.Watch(ctx, tenant, session, core.Cursor{}))
				defer stop()
				w := &watch{next: next, stop: stop}
				first := store.commit(started())
				w.want(t, first)
				c.do(store, bus, cancel)
				w.wantErr(t, c.want)
				compare.Equal(t, "open subscriptions", 0, bus.Subscribers())
			})
		})
	}
}

// The watcher of a removed session learns of the removal immediately if it is published, else
// when it polls the store.
func TestWatchEndsWithItsSession(t *testing.T) {
	t.Parallel()
	for name, told := range map[string]bool{"told": true, "by itself": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				feed, store, _ := newFeed(t, 0)
				next, stop := iter.Pull2(feed.Watch(t.Context(), tenant, session, core.Cursor{}))
				defer stop()
				w := &watch{next: next, stop: stop}
				w.want(t, store.commit(started()))
				begin := time.Now()
				store.fail(core.Errorf(core.ErrNotFound, "session %s does not exist", session))
				if told {
					feed.Publish(t.Context(), []core.Event{resync})
				}
				w.wantErr(t, core.ErrNotFound)
				if waited := time.Since(begin); told && waited > 0 {
					t.Errorf("it took %s", waited)
				}
			})
		})
	}
}

// A slow reader is dropped and reconnects with its last id.
func TestSlowReaderIsDroppedAndMissesNothing(t *testing.T) {
	t.Parallel()
	feed, store, _ := newFeed(t, 4)
	first := store.commit(started())
	w := startWatch(t, feed, core.Cursor{})
	w.want(t, first)
	var all []core.Event
	for range 20 {
		e := store.commit(started())
		all = append(all, e)
		feed.Publish(t.Context(), []core.Event{e})
	}
	w.want(t, all[:4]...)
	w.wantErr(t, events.ErrSlow)
	again := startWatch(t, feed, core.Cursor{After: all[3].Seq})
	again.want(t, all[4:]...)
}

// A watcher whose next events were removed by the retention reloads the messages, and then gets
// the partial text.
func TestWatchResyncsInTheMiddle(t *testing.T) {
	t.Parallel()
	feed, store, _ := newFeed(t, 0)
	first := store.commit(started())
	w := startWatch(t, feed, core.Cursor{})
	feed.Delta(t.Context(), textDelta("m1", 0, "so far"))
	w.want(t, first, textDelta("m1", 0, "so far"))
	store.commit(started())
	third := store.commit(started())
	store.drop(2)
	feed.Publish(t.Context(), []core.Event{third})
	w.want(t, resync, textDelta("m1", 0, "so far"))
	live := store.commit(started())
	feed.Publish(t.Context(), []core.Event{live})
	w.want(t, live)
}

// A gap in the numbers is read from the store; late and repeated messages of the bus are
// harmless.
func TestWatchFillsHolesFromTheStore(t *testing.T) {
	t.Parallel()
	feed, store, _ := newFeed(t, 0)
	first := store.commit(started())
	w := startWatch(t, feed, core.Cursor{})
	w.want(t, first)
	a, b, c := store.commit(started()), store.commit(started()), store.commit(started())
	feed.Publish(t.Context(), []core.Event{c, a, b, c})
	w.want(t, a, b, c)
	d := store.commit(started())
	feed.Publish(t.Context(), []core.Event{d})
	w.want(t, d)
}

// The text of a message ends with message.created, message.discarded or its run.
func TestNothingOfAMessageComesAfterItsEnd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		end  core.Event
	}{
		{"created", created("m1", "abcdef")},
		{"discarded", event(core.EventMessageDiscarded, core.DiscardedData{MessageID: "m1"})},
		{"run failed", event(core.EventRunFailed, nil)},
		{"run canceled", event(core.EventRunCanceled, nil)},
		{"run succeeded", event(core.EventRunSucceeded, nil)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			feed, store, _ := newFeed(t, 0)
			first := store.commit(started())
			w := startWatch(t, feed, core.Cursor{})
			w.want(t, first)
			feed.Delta(t.Context(), textDelta("m1", 0, "abc"))
			w.want(t, textDelta("m1", 0, "abc"))
			end, after := store.commit(c.end), store.commit(event(core.EventSessionUpdated, nil))
			// The end comes by the hole that after leaves, before the delta.
			feed.Publish(t.Context(), []core.Event{after})
			feed.Delta(t.Context(), textDelta("m1", 3, "def"))
			feed.Publish(t.Context(), []core.Event{end})
			last := store.commit(event(core.EventSessionUpdated, nil))
			feed.Publish(t.Context(), []core.Event{last})
			w.want(t, end, after, last)
			late := startWatch(t, feed, core.Cursor{After: last.Seq - 1})
			late.want(t, last)
			tail := store.commit(event(core.EventSessionUpdated, nil))
			feed.Publish(t.Context(), []core.Event{tail})
			late.want(t, tail)
		})
	}
}

// A watcher that joins late gets what there is of each text, in the order in which they began.
func TestLateWatcherGetsArguments(t *testing.T) {
	t.Parallel()
	feed, store, _ := newFeed(t, 0)
	first := store.commit(started())
	piece := func(call string, offset int, text string) core.Event {
		return event(core.EventArgumentsDelta, core.DeltaData{MessageID: "m1", Attempt: 1, Offset: offset, OffsetUTF16: offset, Text: text, DeltaCall: &core.DeltaCall{ToolCallID: call, Name: "weather"}})
	}
	for _, e := range []core.Event{textDelta("m1", 0, "see"), piece("c1", 0, "{"), piece("c1", 1, "}"), piece("c2", 0, "{")} {
		feed.Delta(t.Context(), e)
	}
	w := startWatch(t, feed, core.Cursor{})
	w.want(t, first, textDelta("m1", 0, "see"), piece("c1", 0, "{}"), piece("c2", 0, "{"))
	feed.Delta(t.Context(), piece("c2", 1, "}"))
	w.want(t, piece("c2", 1, "}"))
	end := store.commit(created("m1", "see"))
	feed.Publish(t.Context(), []core.Event{end})
	w.want(t, end)
}

// A text that cannot be continued is left to message.created.
func TestTextWithAHoleWaitsForTheMessage(t *testing.T) {
	t.Parallel()
	feed, store, _ := newFeed(t, 0)
	first := store.commit(started())
	feed.Delta(t.Context(), textDelta("m1", 5, "late"))
	w := startWatch(t, feed, core.Cursor{})
	w.want(t, first)
	feed.Delta(t.Context(), textDelta("m1", 9, "r"))
	end := store.commit(created("m1", "so, later"))
	feed.Publish(t.Context(), []core.Event{end})
	w.want(t, end)
}

// Only of an attempt that this process executes is there a text for who joins.
func TestTextsInMemoryAreBounded(t *testing.T) {
	t.Parallel()
	feed, store, _ := newFeed(t, 0)
	first := store.commit(started())
	feed.Delta(t.Context(), textDelta("m1", 0, "so far"))
	compare.Equal(t, "draft", (core.Draft{Attempt: 1, MessageID: "m1", Text: "so far"}), feed.Draft(attempt(1)))
	feed.End(attempt(0)) // another one
	feed.End(core.Run{ID: "r2", SessionID: session, Attempt: 1})
	w := startWatch(t, feed, core.Cursor{})
	w.want(t, first, textDelta("m1", 0, "so far"))
	feed.End(attempt(1))
	feed.Delta(t.Context(), textDelta("m2", 0, "late"))
	w.want(t, textDelta("m2", 0, "late"))
	compare.Equal(t, "draft of an attempt that has ended", (core.Draft{}), feed.Draft(attempt(1)))
	late := startWatch(t, feed, core.Cursor{})
	second := store.commit(event(core.EventSessionUpdated, nil))
	feed.Publish(t.Context(), []core.Event{second})
	late.want(t, first, second)
}

// A delta of an older attempt is dropped.
func TestDeltaOfALostAttemptIsDropped(t *testing.T) {
	t.Parallel()
	feed, store, _ := newFeed(t, 0)
	newer := event(core.EventMessageDelta, core.DeltaData{MessageID: "m2", Attempt: 2, Text: "new"})
	first := store.commit(started())
	w := startWatch(t, feed, core.Cursor{})
	w.want(t, first)
	feed.Delta(t.Context(), textDelta("m1", 0, "old")) // arrives after the snapshot of newer
	feed.Begin(attempt(2))
	feed.Delta(t.Context(), newer)
	feed.Delta(t.Context(), textDelta("m1", 3, "er"))
	end := store.commit(started())
	feed.Publish(t.Context(), []core.Event{end})
	w.want(t, newer, end)
}
