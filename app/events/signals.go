package events

import (
	"context"
	"encoding/json"
	"iter"
	"log/slog"

	"bobbin/app/core"
)

// signalSubject is where processes wake each other.
const signalSubject = "work"

// Signals wake other processes over the bus. Safe for concurrent use.
type Signals struct {
	bus Bus
	log *slog.Logger
}

// NewSignals returns signals over the bus.
func NewSignals(bus Bus, logger *slog.Logger) *Signals { return &Signals{bus: bus, log: logger} }

// Send tells all processes, this one too. It does not fail: what is lost is found in
// the database.
func (s *Signals) Send(ctx context.Context, signal core.Signal) {
	raw, err := json.Marshal(signal)
	if err == nil {
		err = s.bus.Publish(signalSubject, raw)
	}
	if err != nil {
		s.log.WarnContext(ctx, "other replicas not woken", "err", err)
	}
}

// Receive yields what is sent from now on, until ctx ends; the last element is an
// error otherwise. When some may have been lost it yields one that there may be work.
func (s *Signals) Receive(ctx context.Context) iter.Seq2[core.Signal, error] {
	return func(yield func(core.Signal, error) bool) {
		sub, err := s.bus.Subscribe(signalSubject)
		if err != nil {
			yield(core.Signal{}, err)
			return
		}
		defer sub.Close()
		for {
			select {
			case <-sub.Ready():
			case <-ctx.Done():
				return
			}
			switch message, err := sub.Take(); {
			case err != nil:
				yield(core.Signal{}, err)
				return
			case message != nil && !yield(decodeSignal(message.Data()), nil):
				return
			}
		}
	}
}

// decodeSignal takes what it cannot read as "look".
func decodeSignal(raw []byte) core.Signal {
	var signal core.Signal
	if json.Unmarshal(raw, &signal) != nil {
		return core.Signal{Free: true}
	}
	return signal
}
