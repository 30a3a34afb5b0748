package runs

import (
	"context"
	"time"

	"bobbin/app/core"
)

// relisten is the pause before signals are listened to again.
const relisten = time.Second

// wake tells other processes, if there are any.
func (s *Service) wake(ctx context.Context, signal core.Signal) {
	if s.signals != nil {
		s.signals.Send(ctx, signal)
	}
}

// listen does what other processes ask for, until ctx ends. What is lost, heartbeat and
// sweep find.
func (s *Service) listen(ctx context.Context) {
	for s.signals != nil && ctx.Err() == nil {
		for signal, err := range s.signals.Receive(ctx) {
			if err != nil {
				s.log.WarnContext(ctx, "other replicas not heard", "err", err)
				break
			}
			s.heed(ctx, signal)
		}
		if pause(ctx, relisten) != nil {
			return
		}
	}
}

// heed does what a signal says.
func (s *Service) heed(ctx context.Context, signal core.Signal) {
	if signal.Cancel != "" {
		s.cancel(signal.Cancel)
	}
	if signal.Free && s.isReady() && !s.isStopping() {
		_ = s.look(ctx)
	}
}

// isReady reports whether Run has taken over what an earlier process left behind.
func (s *Service) isReady() bool {
	select {
	case <-s.ready:
		return true
	default:
		return false
	}
}
