package runs

import (
	"context"
	"time"

	"bobbin/app/core"
)

// unwindTime is how long canceled runs may take to return when the process stops.
const unwindTime = 10 * time.Second

// stopRuns ends the executions and releases the leases: see Run.
func (s *Runner) stopRuns(ctx context.Context) {
	s.handBackRuns(func(x *activeRun) bool { return !x.started })
	if !s.waitAll(s.Limits.Grace) {
		s.handBackRuns(func(*activeRun) bool { return true })
		if !s.waitAll(unwindTime) {
			s.Logger.ErrorContext(ctx, "runs do not stop", "runs", s.Active())
		}
	}
	call, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if err := s.Store.Release(call, s.Worker); err != nil {
		s.Logger.ErrorContext(ctx, "leases not released", "err", err)
		return
	}
	s.notifyPeers(ctx, core.Wakeup{Free: true})
}

// handBackRuns prevents new executions and cancels the matching ones, whose runs are handed
// back.
func (s *Runner) handBackRuns(match func(*activeRun) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
	for _, x := range s.active {
		if match(x) {
			x.halt(errHandedBack)
		}
	}
}

// waitAll waits up to d until all executions have ended, and reports whether they have.
func (s *Runner) waitAll(d time.Duration) bool {
	all := make(chan struct{})
	go func() {
		s.wait.Wait()
		close(all)
	}()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-all:
		return true
	case <-t.C:
		return false
	}
}
