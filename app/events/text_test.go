package events_test

import (
	"testing"

	"bobbin/app/core"
	"bobbin/tests/compare"
)

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
