package purge

import (
	"context"
	"errors"
	"time"

	"bobbin/app/core"
)

// Intervals and batch sizes of a sweep.
const (
	sweepEvery   = time.Hour
	stepPause    = 20 * time.Millisecond
	eventBatch   = 500 // events of one step
	sessionBatch = 20  // sessions of one step, each in a transaction of its own
)

// sweepOnce removes everything that is too old by now. A failed sweep is logged.
func (s *Service) sweepOnce(ctx context.Context) {
	start := time.Now()
	var sessions int
	var err error
	if s.KeepArchived > 0 { // first, as their events go with them
		sessions, err = s.sweepSessions(ctx, false, s.KeepArchived)
	}
	if sessions != 0 {
		err := s.Audit.Add(ctx, core.AuditEntry{Actor: "retention", Action: core.AuditSessionsExpired, Target: "archived sessions"},
			map[string]any{"sessions": sessions, "archived_for": s.KeepArchived.String()})
		if err != nil {
			s.Logger.ErrorContext(ctx, "retention not recorded in the audit log", "sessions", sessions, "err", err)
		}
	}
	if err == nil {
		var n int
		n, err = s.sweepSessions(ctx, true, core.TemporaryLife)
		sessions += n
	}
	var events int
	if err == nil {
		events, err = s.sweepEvents(ctx)
	}
	if err == nil {
		err = s.Deletions.Sweep(ctx, deletionLife)
	}
	if ctx.Err() != nil { // the rest can wait until the next start
		err = nil
	}
	s.Observer.Count(core.CountRemoved, events, "events")
	s.Observer.Count(core.CountRemoved, sessions, "sessions")
	outcome := "done"
	if err != nil {
		outcome = "failed"
	}
	s.Observer.Count(core.CountSweeps, 1, outcome)
	switch {
	case err != nil:
		s.Logger.WarnContext(ctx, "retention sweep failed", "events", events, "sessions", sessions, "err", err)
	case events+sessions > 0:
		s.Logger.InfoContext(ctx, "retention swept", "events", events, "sessions", sessions, "dur", time.Since(start))
	}
}

// sweepSessions purges the archived or the temporary sessions that have expired.
func (s *Service) sweepSessions(ctx context.Context, temporary bool, keep time.Duration) (int, error) {
	removed := 0
	for ctx.Err() == nil {
		ids, err := s.Store.ExpiredSessions(ctx, temporary, keep, sessionBatch)
		if err != nil || len(ids) == 0 {
			return removed, err
		}
		n := 0
		for _, id := range ids {
			switch err := s.removeSession(ctx, id, temporary); {
			case err == nil:
				n++
			case !isNotFound(err) && !errors.Is(err, core.ErrConflict):
				return removed + n, err
			}
		}
		removed += n
		// n == 0: they are in use, or another process is removing them.
		if n == 0 || len(ids) < sessionBatch {
			return removed, nil
		}
		_ = core.Sleep(ctx, stepPause) // lets other writers proceed
	}
	return removed, nil
}

// sweepEvents removes the events that have become too old since the last sweep; the first sweep
// of a process checks all.
func (s *Service) sweepEvents(ctx context.Context) (int, error) {
	removed := 0
	for s.KeepEvents > 0 && ctx.Err() == nil {
		step, err := s.Store.SweepEvents(ctx, s.KeepEvents, s.place, eventBatch)
		removed += int(step.Removed)
		if err != nil {
			return removed, err
		}
		s.place = step.Next
		if step.Done {
			return removed, nil
		}
		_ = core.Sleep(ctx, stepPause) // lets other writers proceed
	}
	return removed, nil
}
