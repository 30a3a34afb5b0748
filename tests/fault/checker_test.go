package fault_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/tests/records"
	"bobbin/tests/seed"
)

// durable returns an event with a number.
func durable(seq int64, kind core.EventType, data any) core.Event {
	e := core.NewEvent("s", "r", kind, data)
	e.Seq = seq
	return e
}

func text(id core.MessageID, offset int, text string) core.Event {
	return core.NewEvent("s", "r", core.EventMessageDelta, core.DeltaData{MessageID: id, Attempt: 1, OffsetUTF16: offset, Text: text})
}

func created(seq int64, id core.MessageID, content string) core.Event {
	m := core.Message{ID: id, SessionID: "s", Seq: seq, Role: core.RoleAssistant, Content: content, Status: core.MessageComplete}
	return durable(seq, core.EventMessageCreated, core.MessageData{Message: m})
}

// The checker of feeds finds what must not be, and nothing in what may be.
func TestFeedChecker(t *testing.T) {
	t.Parallel()
	begun, end := durable(1, core.EventRunStarted, struct{}{}), durable(3, core.EventRunSucceeded, struct{}{})
	reconnect := core.Event{} // stands for a new connection
	for _, tt := range []struct {
		name   string
		events []core.Event
		want   string // in the violation; empty = none
	}{
		{"in order", []core.Event{begun, text("m", 0, "he"), text("m", 2, "llo"), created(2, "m", "hello"), end}, ""},
		{"a snapshot after a new connection", []core.Event{begun, text("m", 0, "he"), reconnect, text("m", 0, "hell"), created(2, "m", "hello"), end}, ""},
		{"taken back", []core.Event{begun, text("m", 0, "he"), durable(2, core.EventMessageDiscarded, core.DiscardedData{MessageID: "m"}), end}, ""},
		{"a gap", []core.Event{begun, end}, "has number 3 after 1"},
		{"a repetition", []core.Event{begun, begun}, "has number 1 after 1"},
		{"a repetition after a new connection", []core.Event{begun, reconnect, begun}, "has number 1 after 1"},
		{"text with a gap", []core.Event{begun, text("m", 2, "llo")}, "at offset 2 after 0"},
		{"text twice", []core.Event{begun, text("m", 0, "he"), text("m", 0, "he")}, "at offset 0 after 2"},
		{"text of another message", []core.Event{begun, text("m", 0, "no"), created(2, "m", "hello")}, "is not what was shown"},
		{"text after its message", []core.Event{begun, created(2, "m", "hello"), text("m", 0, "hello")}, "in the log: true"},
		{"text after it was taken back", []core.Event{begun, durable(2, core.EventMessageDiscarded, core.DiscardedData{MessageID: "m"}), text("m", 0, "x")}, "taken back: true"},
		{"a message twice", []core.Event{begun, created(2, "m", "hello"), created(3, "m", "hello")}, "created again"},
		{"text left standing", []core.Event{begun, durable(2, core.EventRunStarted, struct{}{}), text("m", 0, "he"), end}, "neither in the log nor taken back"},
		{"resync", []core.Event{begun, core.NewEvent("s", "", core.EventResync, struct{}{})}, "resync after event 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var found []string
			f := newFeed(func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) })
			for _, e := range tt.events {
				if e.Type == "" {
					f.connected()
					continue
				}
				f.take(e)
			}
			if all := strings.Join(found, "\n"); (all == "") != (tt.want == "") || !strings.Contains(all, tt.want) {
				t.Errorf("got %q, want %q", all, tt.want)
			}
		})
	}
}

// What a watcher did not hear of is found when it is compared with what is stored.
func TestFeedIsCompared(t *testing.T) {
	t.Parallel()
	stored := records.Record{
		Events:   []core.Event{durable(1, core.EventRunStarted, nil), created(2, "m", "hello")},
		Messages: []core.Message{{ID: "m", Seq: 1}},
	}
	for heard, want := range map[int]int{2: 0, 1: 3} {
		n := 0
		f := newFeed(func(string, ...any) { n++ })
		for _, e := range stored.Events[:heard] {
			f.take(e)
		}
		f.compare(stored)
		if n != want {
			t.Errorf("with %d of 2 events: got %d violations, want %d", heard, n, want)
		}
	}
}

// A plan has each kind of fault, within the time, and the same seed gives the same.
func TestPlan(t *testing.T) {
	t.Parallel()
	for n := range uint64(200) {
		strikes := plan(seed.Fixed(n, 0), 12*time.Second)
		kinds := map[kind]bool{}
		for i, s := range strikes {
			kinds[s.kind] = true
			if s.at >= 12*time.Second || i > 0 && s.at < strikes[i-1].at {
				t.Errorf("seed %d: strike %d is at %s", n, i, s.at)
			}
		}
		if len(kinds) != len(habits()) {
			t.Errorf("seed %d: got kinds %v, want all %d", n, kinds, len(habits()))
		}
		if again := plan(seed.Fixed(n, 0), 12*time.Second); fmt.Sprint(again) != fmt.Sprint(strikes) {
			t.Errorf("seed %d: the plan is another one the second time", n)
		}
	}
}
