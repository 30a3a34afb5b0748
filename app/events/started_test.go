package events_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
)

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
	if e := w.wantType(t, core.EventNodeStarted); e.Data.(core.NodeData).Node != "llm_node" || e.Seq != 0 {
		t.Errorf("got %+v with number %d, want the node that the run is in", e.Data, e.Seq)
	}
	feed.Delta(t.Context(), node("tool_node", 5))
	if e := w.wantType(t, core.EventNodeStarted); e.Data.(core.NodeData).Node != "tool_node" {
		t.Errorf("got %+v, want the next node, and none twice", e.Data)
	}
	feed.Delta(t.Context(), event(core.EventNodeFinished, core.NodeData{Node: "tool_node", Step: 5}))
	w.wantType(t, core.EventNodeFinished)
	last := store.commit(event(core.EventRunSucceeded, core.RunData{}))
	feed.Publish(t.Context(), []core.Event{last})
	w.wantType(t, last.Type)
	late := watchAll(t, feed, core.Cursor{After: last.Seq})
	next := store.commit(event(core.EventRunStarted, core.RunData{}))
	feed.Publish(t.Context(), []core.Event{next})
	if e := late.wantType(t, core.EventRunStarted); e.Seq != next.Seq {
		t.Errorf("got event %d, want %d, and nothing of the run that has ended", e.Seq, next.Seq)
	}
}

// wantType pulls one event of that type.
func (w *watch) wantType(t *testing.T, kind core.EventType) core.Event {
	t.Helper()
	e, err, _ := w.next()
	if err != nil || e.Type != kind {
		t.Fatalf("got %s %+v, %v, want %s", e.Type, e.Data, err, kind)
	}
	return e
}

func (w *watch) wantStarted(t *testing.T, id core.MessageID) {
	t.Helper()
	e := w.wantType(t, core.EventMessageStarted)
	got := e.Data.(core.StartedData)
	if diff := cmp.Diff(core.StartedData{MessageID: id, Role: core.RoleAssistant, ParentID: "q", Attempt: 1}, got); diff != "" || e.RunID == "" || e.Seq != 0 {
		t.Errorf("message.started of run %q (-want +got):\n%s", e.RunID, diff)
	}
}

func (w *watch) wantText(t *testing.T, utf16 int, text string) {
	t.Helper()
	got := w.wantType(t, core.EventMessageDelta).Data.(core.DeltaData)
	if got.OffsetUTF16 != utf16 || got.Text != text {
		t.Errorf("got %q at %d, want %q at %d", got.Text, got.OffsetUTF16, text, utf16)
	}
}
