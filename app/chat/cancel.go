package chat

import (
	"context"
	"errors"

	"bobbin/app/core"
)

// Cancel ends a run: a queued one at once, one at work as soon as it can be
// stopped; what it has said so far is kept. It returns the run as it is then. A run
// that has ended stays as it is, so Cancel may be repeated.
func (s *Service) Cancel(ctx context.Context, tenant core.Tenant, id core.RunID) (core.Run, error) {
	run, events, err := s.Runs.RequestCancel(ctx, tenant, id)
	if err != nil {
		return core.Run{}, err
	}
	s.Feed.Publish(context.WithoutCancel(ctx), events)
	switch {
	case run.Suspended(): // it waited for a decision: nobody is at work on it
		s.Work.Next(context.WithoutCancel(ctx), run.SessionID)
	case !run.Status.Ended():
		s.Work.Cancel(id) // another process sees the request by its heartbeat
	}
	return run, nil
}

// Stop cancels the session's active run, if there is one, and keeps what it has said so far.
// Queued runs stay: the next one begins.
func (s *Service) Stop(ctx context.Context, tenant core.Tenant, id core.SessionID) error {
	active, err := s.Runs.Active(ctx, tenant, id)
	if errors.Is(err, core.ErrNotFound) {
		_, err = s.Sessions.Get(ctx, tenant, id)
		return err
	}
	if err == nil {
		_, err = s.Cancel(ctx, tenant, active.ID)
	}
	return err
}
