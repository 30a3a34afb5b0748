package handlers_test

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"sync"
	"testing"

	"bobbin/app/api/handlers"
	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// of is a source of these events.
func of(events ...core.Event) handlers.EventSource {
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

// Readers who share an event get what each would have encoded, and it is encoded once; an
// error is the same for all.
func TestSharedFrames(t *testing.T) {
	t.Parallel()
	var alone, shared []core.Event
	for i := range 100 {
		e := core.Event{SessionID: "s", Seq: int64(i + 1), Type: core.EventMessageCreated, At: at(), Data: core.MessageData{
			Message: core.Message{ID: "m", Content: strings.Repeat("x", i*i)},
		}}
		alone = append(alone, e)
		e.Frame = &core.Frame{}
		shared = append(shared, e)
	}
	want := newWriter()
	must.Do(t, handlers.ServeEvents(t.Context(), want, of(alone...), handlers.StreamOptions{}))
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			w := newWriter()
			if err := handlers.ServeEvents(t.Context(), w, of(shared...), handlers.StreamOptions{}); err != nil {
				t.Error(err)
			}
			compare.Equal(t, "a reader got something else than who is alone", want.text(), w.text())
		})
	}
	readers.Wait()
	changed := shared[0]
	changed.Data = core.MessageData{}
	bytes, err := changed.Frame.Encoded(func() ([]byte, error) { return handlers.AppendEvent(nil, changed) })
	if first, _ := handlers.AppendEvent(nil, alone[0]); err != nil || string(bytes) != string(first) {
		t.Errorf("got %s, %v, want what the first reader has encoded", bytes, err)
	}
	bad := core.Event{SessionID: "s", Seq: 1, Type: "a", At: at(), Data: json.RawMessage("[1]"), Frame: &core.Frame{}}
	for range 2 { // the second time from memory
		if err := handlers.ServeEvents(t.Context(), newWriter(), of(bad), handlers.StreamOptions{}); err == nil {
			t.Error("got no error for data that are no object")
		}
	}
}
