package chat

import (
	"cmp"
	"context"
	"errors"

	"bobbin/app/core"
)

// Decide answers the question whether a tool may start. When it returns without error
// the answer counts, and the run goes on once all that it asked is answered. The same
// answer may be given again. Errors: ErrConflict if the question was answered
// otherwise, expired, or needs no answer any more; ErrNotFound; ErrInvalid for a
// comment that is too long.
func (s *Service) Decide(ctx context.Context, scope core.Scope, run core.RunID, id core.ApprovalID, d core.ApprovalDecision) (core.Approval, error) {
	var f faults
	d.Comment = f.Text("comment", d.Comment, s.limits.Comment)
	if err := f.Err(); err != nil {
		return core.Approval{}, err
	}
	d.By = cmp.Or(scope.User, scope.Owner)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), acceptTime)
	defer cancel()
	decided, err := s.runs.Decide(ctx, scope, run, id, d)
	if err != nil {
		return core.Approval{}, err
	}
	s.feed.Publish(ctx, decided.Events)
	if decided.Run.Suspended() {
		s.resume(ctx, decided.Run.SessionID)
	}
	return decided.Approval, nil
}

// resume lets this process go on with a run that is suspended: it is the oldest of
// its session. What goes wrong here the sweep makes good.
func (s *Service) resume(ctx context.Context, session core.SessionID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), acceptTime)
	defer cancel()
	c, err := s.runs.Claim(ctx, session, s.worker)
	switch {
	case errors.Is(err, core.ErrNotFound), errors.Is(err, core.ErrConflict): // somebody else has it
	case err != nil:
		s.log.WarnContext(ctx, "run not resumed", "session_id", session, "err", err)
	default:
		s.feed.Publish(ctx, c.Events)
		s.work.Start(c.Run)
	}
}
