package events

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"bobbin/app/core"
)

// signalSubject is where processes wake each other.
const signalSubject = "work"

// resubscribeDelay is the pause before signals are received again after an error.
const resubscribeDelay = time.Second

// Signals wake other processes over the bus. Safe for concurrent use.
type Signals struct {
	bus Bus
	log *slog.Logger
}

// NewSignals returns signals over the bus.
func NewSignals(bus Bus, logger *slog.Logger) *Signals { return &Signals{bus: bus, log: logger} }

// Send sends a signal to all processes, including this one. It does not fail: lost signals are
// made up for by sweeps.
func (s *Signals) Send(ctx context.Context, signal core.Wakeup) {
	raw, err := json.Marshal(signal)
	if err == nil {
		err = s.bus.Publish(signalSubject, raw)
	}
	if err != nil {
		s.log.WarnContext(ctx, "other replicas not notified", "err", err)
	}
}

// Listen calls handle for each signal that is sent from now on, until ctx ends. When signals may
// have been lost, it passes one that says there may be work.
func (s *Signals) Listen(ctx context.Context, handle func(core.Wakeup)) {
	for ctx.Err() == nil {
		err := receiveMessages(ctx, s.bus, signalSubject, func(data []byte) {
			var signal core.Wakeup
			if json.Unmarshal(data, &signal) != nil { // also an empty one: some may have been lost
				signal = core.Wakeup{Free: true}
			}
			handle(signal)
		})
		if err != nil {
			s.log.WarnContext(ctx, "signals of other replicas not received", "err", err)
		}
		_ = core.Sleep(ctx, resubscribeDelay)
	}
}

// receiveMessages subscribes and handles messages until ctx ends or the subscription fails.
func receiveMessages(ctx context.Context, bus Bus, subject string, handle func(data []byte)) error {
	sub, err := bus.Subscribe(subject)
	if err != nil {
		return err
	}
	defer sub.Close()
	for {
		select {
		case <-sub.Ready():
		case <-ctx.Done():
			return nil
		}
		message, err := sub.Take()
		if err != nil {
			return err
		}
		if message != nil {
			handle(message.Data())
		}
	}
}
