package purge

import (
	"context"
	"time"

	"bobbin/app/core"
)

// Intervals and batch sizes of a sweep.
const (
	interval     = time.Hour
	stepPause    = 20 * time.Millisecond
	eventBatch   = 500 // events of one step
	sessionBatch = 20  // sessions of one step, each in a transaction of its own
)

// RetentionWorker removes data whose retention has ended. All but the times are required.
type RetentionWorker struct {
	*Service // removes the sessions

	Observer core.Observer
	Events   time.Duration // how long events are kept; 0 = forever
	Archived time.Duration // how long archived sessions are kept; 0 = forever

	place core.EventPlace // where the last sweep of events ended; used by Run only
}

// Run sweeps immediately and then every hour, until ctx ends. A failed sweep is logged.
func (w *RetentionWorker) Run(ctx context.Context) error {
	return core.Every(ctx, interval, w.sweepOnce)
}

// sweepOnce removes everything that is too old by now.
func (w *RetentionWorker) sweepOnce(ctx context.Context) {
	start := time.Now()
	var sessions int
	var err error
	if w.Archived > 0 { // first, as their events go with them
		sessions, err = w.sweepSessions(ctx, false, w.Archived)
	}
	if sessions != 0 {
		err := w.Audit.Add(ctx, core.AuditEntry{Actor: "retention", Action: core.AuditSessionsExpired, Target: "archived sessions"},
			map[string]any{"sessions": sessions, "archived_for": w.Archived.String()})
		if err != nil {
			w.Logger.ErrorContext(ctx, "retention not recorded in the audit log", "sessions", sessions, "err", err)
		}
	}
	if err == nil {
		var n int
		n, err = w.sweepSessions(ctx, true, core.TemporaryLife)
		sessions += n
	}
	var events int
	if err == nil {
		events, err = w.sweepEvents(ctx)
	}
	if ctx.Err() != nil { // the rest can wait until the next start
		err = nil
	}
	w.Observer.Count(core.CountRemoved, events, "events")
	w.Observer.Count(core.CountRemoved, sessions, "sessions")
	outcome := "done"
	if err != nil {
		outcome = "failed"
	}
	w.Observer.Count(core.CountSweeps, 1, outcome)
	switch {
	case err != nil:
		w.Logger.WarnContext(ctx, "retention sweep failed", "events", events, "sessions", sessions, "err", err)
	case events+sessions > 0:
		w.Logger.InfoContext(ctx, "retention swept", "events", events, "sessions", sessions, "dur", time.Since(start))
	}
}

// sweepSessions purges the archived or the temporary sessions that have expired.
func (w *RetentionWorker) sweepSessions(ctx context.Context, temporary bool, keep time.Duration) (int, error) {
	removed := 0
	for ctx.Err() == nil {
		ids, err := w.Store.ExpiredSessions(ctx, temporary, keep, sessionBatch)
		if err != nil || len(ids) == 0 {
			return removed, err
		}
		n, err := w.Expired(ctx, ids, temporary)
		removed += n
		// n == 0: they are in use, or another process is removing them.
		if err != nil || n == 0 || len(ids) < sessionBatch {
			return removed, err
		}
		_ = core.Sleep(ctx, stepPause) // lets other writers proceed
	}
	return removed, nil
}

// sweepEvents removes the events that have become too old since the last sweep; the first sweep
// of a process checks all.
func (w *RetentionWorker) sweepEvents(ctx context.Context) (int, error) {
	removed := 0
	for w.Events > 0 && ctx.Err() == nil {
		step, err := w.Store.SweepEvents(ctx, w.Events, w.place, eventBatch)
		removed += int(step.Removed)
		if err != nil {
			return removed, err
		}
		w.place = step.Next
		if step.Done {
			return removed, nil
		}
		_ = core.Sleep(ctx, stepPause) // lets other writers proceed
	}
	return removed, nil
}
