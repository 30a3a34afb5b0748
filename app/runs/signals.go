package runs

import (
	"context"

	"bobbin/app/core"
)

// notifyPeers sends a signal to the other processes, if there are any.
func (s *Runner) notifyPeers(ctx context.Context, signal core.Wakeup) {
	if s.signals != nil {
		s.signals.Send(ctx, signal)
	}
}

// handleSignal handles a signal of another process. One sweep serves all signals that arrive
// meanwhile, so that a cancel does not wait behind them.
func (s *Runner) handleSignal(signal core.Wakeup) {
	if signal.Cancel != "" {
		s.cancelLocal(signal.Cancel)
	}
	if signal.Free {
		s.triggerSweep()
	}
}

// isReady reports whether Run has taken over what an earlier process left behind.
func (s *Runner) isReady() bool {
	select {
	case <-s.ready:
		return true
	default:
		return false
	}
}
