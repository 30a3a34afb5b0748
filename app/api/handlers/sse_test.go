package handlers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/api/handlers"
	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

func at() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func TestAppendEvent(t *testing.T) {
	t.Parallel()
	const head = `{"session_id":"s","run_id":"r","at":"2026-01-02T03:04:05Z"`
	tests := []struct {
		name string
		e    core.Event
		want string
	}{
		{"durable", core.Event{SessionID: "s", RunID: "r", Seq: 7, Type: core.EventRunStarted, At: at(), Data: json.RawMessage(`{"a":1}`)},
			"id: 7\nevent: run.started\ndata: " + head + ",\"a\":1}\n\n"},
		{"passing", core.Event{SessionID: "s", RunID: "r", Type: core.EventMessageDelta, At: at(), Data: core.DeltaData{MessageID: "m", ParentID: "p", Attempt: 1, Offset: 7, OffsetUTF16: 5, Text: "\n<"}},
			"event: message.delta\ndata: {\"message_id\":\"m\",\"offset_utf16\":5,\"text\":\"\\n<\"}\n\n"},
		{"resync", core.Event{SessionID: "s", Seq: 9, Type: core.EventResync, At: at()}, "id: 9\nevent: resync\ndata: {\"session_id\":\"s\",\"at\":\"2026-01-02T03:04:05Z\"}\n\n"},
		{"resync of a session without events", core.Event{SessionID: "s", Type: core.EventResync, At: at()}, "id: 0\nevent: resync\ndata: {\"session_id\":\"s\",\"at\":\"2026-01-02T03:04:05Z\"}\n\n"},
		{"of no run, without data", core.Event{SessionID: "s", Type: core.EventNodeStarted, At: at()},
			"event: node.started\ndata: {\"session_id\":\"s\",\"at\":\"2026-01-02T03:04:05Z\"}\n\n"},
		{"of a known type", core.Event{SessionID: "s", RunID: "r", Type: core.EventNodeStarted, At: at(), Data: core.NodeData{Node: "<n>", Step: 1}},
			"event: node.started\ndata: " + head + ",\"node\":\"<n>\",\"step\":1}\n\n"},
		{"empty data", core.Event{SessionID: "s", RunID: "r", Type: core.EventNodeStarted, At: at(), Data: json.RawMessage("{\r\n}")}, "event: node.started\ndata: " + head + "}\n\n"},
		{"data as a database may store it", core.Event{SessionID: "s", RunID: "r", Type: core.EventNodeStarted, At: at(), Data: json.RawMessage("\n{\"a\":\r\n [1,\t2]}\n")},
			"event: node.started\ndata: " + head + ",\"a\":[1,2]}\n\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := handlers.AppendEvent([]byte("x"), tt.e)
			if err != nil || string(got) != "x"+tt.want {
				t.Errorf("got %q, %v, want %q after x", got, err, tt.want)
			}
		})
	}
	for _, data := range []string{`[1]`, `null`, `"x"`, `{`, `{} {}`} {
		if got, err := handlers.AppendEvent(nil, core.Event{Type: "x", Data: json.RawMessage(data)}); err == nil {
			t.Errorf("got %q for data %s, want an error", got, data)
		}
	}
	if _, err := handlers.AppendEvent(nil, core.Event{Type: "x", At: time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC)}); err == nil {
		t.Error("got no error for a time that JSON cannot say, want one")
	}
}

// writer is a response writer that keeps what it gets, and fails when told.
type writer struct {
	mu      sync.Mutex
	header  http.Header
	body    bytes.Buffer
	flushed int
	fail    error
}

func newWriter() *writer { return &writer{header: http.Header{}} }

func (w *writer) Header() http.Header { return w.header }
func (w *writer) WriteHeader(int)     {}
func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fail != nil {
		return 0, w.fail
	}
	return w.body.Write(p)
}

func (w *writer) FlushError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flushed = w.body.Len()
	return w.fail
}

func (w *writer) breakNow(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fail = err
}

// text returns what the reader has got: what was flushed.
func (w *writer) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.body.String()[:w.flushed]
}

// from is a source of what the channel brings; closing it ends the source.
func from(events <-chan core.Event) handlers.EventSource {
	return func(ctx context.Context) iter.Seq2[core.Event, error] {
		return func(yield func(core.Event, error) bool) {
			for {
				select {
				case e, open := <-events:
					if !open || !yield(e, nil) {
						return
					}
				case <-ctx.Done():
					yield(core.Event{}, context.Cause(ctx))
					return
				}
			}
		}
	}
}

// TestServe: every event is with its reader at once, and a comment comes every
// 15 s of silence.
func TestServe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, events, done := newWriter(), make(chan core.Event), make(chan error)
		go func() { done <- handlers.ServeEvents(t.Context(), w, from(events), handlers.StreamOptions{}) }()
		synctest.Wait()
		compare.Equal(t, "at the beginning: want a comment", ": connected\n\n", w.text())
		events <- core.Event{Seq: 1, Type: "a", At: at()}
		synctest.Wait()
		if got, want := w.text(), ": connected\n\nretry: 1000\nid: 1\nevent: a\n"; !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %q at its beginning", got, want)
		}
		time.Sleep(14 * time.Second)
		events <- core.Event{Seq: 2, Type: "b", At: at()}
		time.Sleep(14 * time.Second)
		synctest.Wait()
		if got := w.text(); strings.Contains(got, "keep-alive") || strings.Count(got, "retry") != 1 {
			t.Errorf("got %q, want no comment before 15 s of silence and one retry", got)
		}
		time.Sleep(31 * time.Second)
		synctest.Wait()
		compare.Equal(t, "comments after 45 s of silence", 3, strings.Count(w.text(), ": keep-alive\n\n"))
		close(events)
		compare.Error(t, "at the end", nil, <-done)
	})
}

// TestServeEnds: each way in which a stream can end, none of which leaves a
// goroutine behind (the bubble would not end).
func TestServeEnds(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	tests := []struct {
		name string
		end  func(w *writer, events chan<- core.Event, cancel func())
		want error
	}{
		{"the reader leaves", func(_ *writer, _ chan<- core.Event, cancel func()) { cancel() }, nil},
		{"the reader is gone at an event", func(w *writer, events chan<- core.Event, _ func()) {
			w.breakNow(boom)
			events <- core.Event{Type: "a", At: at()}
		}, handlers.ErrGone},
		{"the reader is gone at a keep-alive", func(w *writer, _ chan<- core.Event, _ func()) { w.breakNow(boom) }, handlers.ErrGone},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				w, events, done := newWriter(), make(chan core.Event), make(chan error)
				go func() { done <- handlers.ServeEvents(ctx, w, from(events), handlers.StreamOptions{}) }()
				synctest.Wait()
				tt.end(w, events, cancel)
				compare.Error(t, "<-done", tt.want, <-done)
			})
		})
	}
}

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
