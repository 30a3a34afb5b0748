package sse_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"bobbin/app/api/sse"
	"bobbin/app/core"
)

// of is a source of these events.
func of(events ...core.Event) sse.Source {
	return func(context.Context) iter.Seq2[core.Event, error] {
		return func(yield func(core.Event, error) bool) {
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// Readers who share what is encoded get what each would have encoded: also when the same
// data are of different events, and for more events than are remembered.
func TestFrames(t *testing.T) {
	t.Parallel()
	shared := json.RawMessage(`{"a": 1}`)
	events := []core.Event{
		{SessionID: "s", Seq: 1, Type: "a", At: at(), Data: shared}, {SessionID: "s", Seq: 2, Type: "a", At: at(), Data: shared},
		{SessionID: "t", Seq: 1, Type: "a", At: at(), Data: shared}, {SessionID: "s", RunID: "r", Seq: 1, Type: "a", At: at(), Data: shared},
		{SessionID: "s", Seq: 1, Type: "b", At: at(), Data: shared}, {SessionID: "s", Seq: 1, Type: "a", At: at(), Data: shared[:len(shared):len(shared)]},
		{SessionID: "s", Seq: 3, Type: "none", At: at()},
	}
	for i := range 200 {
		size := 10
		if i%20 == 0 {
			size = 2 << 20
		}
		data := fmt.Appendf(nil, `{"number":%d,"text":%q}`, i, strings.Repeat("x", size))
		events = append(events, core.Event{SessionID: "s", Seq: int64(10 + i), Type: "a", At: at(), Data: data})
	}
	alone := newWriter()
	if err := sse.Serve(t.Context(), alone, of(events...), sse.Options{}); err != nil {
		t.Fatal(err)
	}
	frames := sse.NewFrames()
	var readers sync.WaitGroup
	for i := range 4 {
		readers.Go(func() {
			mine := events
			if i == 3 { // in another order
				mine = slices.Concat(events[100:], events[:100])
			}
			w := newWriter()
			if err := sse.Serve(t.Context(), w, of(mine...), sse.Options{Frames: frames}); err != nil {
				t.Error(err)
			}
			if i < 3 && w.text() != alone.text() || len(w.text()) != len(alone.text()) {
				t.Errorf("reader %d got something else than who is alone", i)
			}
		})
	}
	readers.Wait()
	bad := core.Event{SessionID: "s", Seq: 1, Type: "a", At: at(), Data: json.RawMessage("[1]")}
	for range 2 { // the second time from memory
		if err := sse.Serve(t.Context(), newWriter(), of(bad), sse.Options{Frames: frames}); err == nil {
			t.Error("got no error for data that are no object")
		}
	}
}
