package chat

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"bobbin/app/core"
)

// WatchRun yields the events of a run of the scope, as the caller knows it, and ends without an error
// after the one that ends the run. With from.After 0 it begins with the run's
// first event. It ends at once when the run has ended and nothing of it comes
// after from. A resync event is passed on; if the run has ended then, it is the
// last one.
func (s *Service) WatchRun(ctx context.Context, tenant core.Tenant, run core.Run, from core.Cursor) iter.Seq2[core.Event, error] {
	return func(yield func(core.Event, error) bool) {
		if err := s.yieldEvents(ctx, tenant, run, from, yield); err != nil {
			yield(core.Event{}, err)
		}
	}
}

// yieldEvents returns nil when everything is said or the reader left.
func (s *Service) yieldEvents(ctx context.Context, tenant core.Tenant, run core.Run, from core.Cursor, yield func(core.Event, error) bool) (err error) {
	if !from.Live && from.After <= 0 {
		from.After = max(run.FirstEvent-1, 0)
	}
	until := int64(0) // the run has ended by this event; 0 = it had not when we began
	if run.Status.Ended() {
		if until, err = s.Events.Last(ctx, tenant, run.SessionID); err != nil {
			return fmt.Errorf("last event of session %s: %w", run.SessionID, err)
		}
		if from.Live || from.After >= until {
			return nil
		}
	}
	for e, err := range s.Feed.WatchRun(ctx, tenant, run, from) {
		if err != nil {
			return err
		}
		isResync := e.Type == core.EventResync
		if (isResync || e.RunID == run.ID) && (!yield(e, nil) || e.Type.EndsRun()) || !isResync && until > 0 && e.Seq >= until {
			return nil
		}
		if isResync {
			if run, err := s.Runs.Get(ctx, tenant, run.ID); err != nil || run.Status.Ended() {
				return err
			}
		}
	}
	return nil
}

// rewatch is the pause before a watch that was dropped begins again.
const rewatch = 100 * time.Millisecond

// Wait returns the run when it has ended, in whatever way, or waits for a person's
// decision. It returns earlier only with an error: the cause of ctx's end, ErrNotFound, or a fault of storage.
func (s *Service) Wait(ctx context.Context, tenant core.Tenant, run core.Run) (core.Outcome, error) {
	for {
		out, err := s.untilEnd(ctx, tenant, run)
		if ctx.Err() != nil {
			return core.Outcome{}, context.Cause(ctx)
		}
		if out.Run.Status.Ended() || err != nil && !errors.Is(err, core.ErrUnavailable) {
			return out, err
		}
		// The events only say when to look: the row is the truth.
		now, err := s.Runs.Get(ctx, tenant, run.ID)
		if errors.Is(err, core.ErrNoDatabase) && ctx.Err() == nil {
			now, err = core.Run{}, nil // it goes on when the database is there again
		}
		if err != nil || now.Status.Ended() || now.Status == core.RunWaiting {
			return core.Outcome{Run: now}, err
		}
		_ = core.Sleep(ctx, rewatch) // the next watch returns the cause of its end
	}
}

// WaitFor is Wait for at most the limit. It returns the run as it is then, or if only the waiting failed: an
// error would make the caller send its message again.
func (s *Service) WaitFor(ctx context.Context, tenant core.Tenant, run core.Run, limit time.Duration) (core.Outcome, error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out, err := s.Wait(limited, tenant, run)
	harmless := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, core.ErrTimeout) || errors.Is(err, core.ErrUnavailable)
	if harmless && ctx.Err() == nil {
		out.Run, err = s.Runs.Get(ctx, tenant, run.ID)
	}
	return out, err
}

// untilEnd returns when the run has ended, with what its events say of that if it was not at its end
// already, or waits for a decision, or why it could not see that.
func (s *Service) untilEnd(ctx context.Context, tenant core.Tenant, run core.Run) (out core.Outcome, err error) {
	for e, err := range s.WatchRun(ctx, tenant, run, core.Cursor{}) {
		if err != nil {
			return core.Outcome{}, err
		}
		switch d := e.Data.(type) {
		case core.MessageData:
			out.Answer = &d.Message
		case core.RunData:
			if e.Type.EndsRun() && !run.Status.Ended() {
				out.Run, out.Run.Input = d.Run, run.Input // events are without it
				if out.Answer != nil && out.Answer.ID != d.Run.AnswerID {
					out.Answer = nil
				}
			}
			if e.Type != core.EventRunWaiting {
				continue
			}
			// It may have gone on long since.
			if now, err := s.Runs.Get(ctx, tenant, run.ID); err != nil || now.Status == core.RunWaiting {
				return core.Outcome{}, err
			}
		}
	}
	return out, nil
}

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
