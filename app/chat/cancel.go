package chat

import (
	"context"

	"bobbin/app/core"
)

// Cancel ends a run: a queued one at once, one at work as soon as it can be
// stopped; what it has said so far is kept. It returns the run as it is then, or
// with wait as it has ended; Wait's errors apply. A run that has ended stays as it
// is, so Cancel may be repeated. Canceling is committed even if the wait fails.
func (s *Service) Cancel(ctx context.Context, scope core.Scope, id core.RunID, wait bool) (core.Run, error) {
	run, err := s.cancel(ctx, scope, id)
	if err != nil || !wait || run.Status.Ended() {
		return run, err
	}
	return s.Wait(ctx, scope, id)
}

func (s *Service) cancel(ctx context.Context, scope core.Scope, id core.RunID) (core.Run, error) {
	run, events, err := s.runs.RequestCancel(ctx, scope, id)
	if err != nil {
		return core.Run{}, err
	}
	s.feed.Publish(context.WithoutCancel(ctx), events)
	switch {
	case run.Suspended(): // it waited for a decision: nobody is at work on it
		s.resume(ctx, run.SessionID)
	case !run.Status.Ended():
		s.work.Cancel(id) // another process sees the request by its heartbeat
	}
	return run, nil
}
