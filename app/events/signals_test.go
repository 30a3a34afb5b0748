package events_test

import (
	"log/slog"
	"strings"
	"testing"
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
				compare.True(t, got == (core.Wakeup{Cancel: "r1"}) || got == (core.Wakeup{Free: true}), "got %+v, want the cancel, or that there may be work", got)
			case <-again.C:
			case <-late:
				t.Fatal("nothing is heard")
			}
		}
		listen.Close()
		select {
		case got := <-log:
			compare.True(t, strings.Contains(got, "not received") && strings.Contains(got, events.ErrClosed.Error()), "got %q in the log, want %v", got, events.ErrClosed)
		case <-late:
			t.Error("a closed bus is not logged")
		}
	})
}
