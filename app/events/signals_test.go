package events_test

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/events"
)

// TestSignals: every process hears every signal, and of what it cannot read that there
// may be work; a closed bus ends it with an error.
func TestSignals(t *testing.T) {
	onBuses(t, 0, func(t *testing.T, publish, listen closer) {
		sender := events.NewSignals(publish, slog.New(slog.DiscardHandler))
		receiver := events.NewSignals(listen, slog.New(slog.DiscardHandler))
		heard, ended := make(chan core.Signal, 10_000), make(chan error, 1)
		go func() {
			for signal, err := range receiver.Receive(t.Context()) {
				if err != nil {
					ended <- err
					return
				}
				heard <- signal
			}
		}()
		again := time.NewTicker(5 * time.Millisecond)
		defer again.Stop()
		late := time.After(patience)
		for got := (core.Signal{}); got.Cancel == ""; {
			if err := publish.Publish("work", []byte("unreadable")); err != nil {
				t.Fatal(err)
			}
			sender.Send(t.Context(), core.Signal{Cancel: "r1"})
			select {
			case got = <-heard:
				if got != (core.Signal{Cancel: "r1"}) && got != (core.Signal{Free: true}) {
					t.Errorf("got %+v, want the cancel, or that there may be work", got)
				}
			case <-again.C:
			case <-late:
				t.Fatal("nothing is heard")
			}
		}
		listen.Close()
		select {
		case err := <-ended:
			if !errors.Is(err, events.ErrClosed) {
				t.Errorf("got error %v, want %v", err, events.ErrClosed)
			}
		case <-late:
			t.Error("a closed bus does not end it")
		}
	})
}
