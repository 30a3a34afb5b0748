package retention

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"bobbin/app/core"
)

// How a sweep goes.
const (
	interval     = time.Hour
	pause        = 20 * time.Millisecond
	eventBatch   = 500 // events of one step
	sessionBatch = 20  // sessions of one step, each in a transaction of its own
)

// store finds and removes what is old, by the database's clock.
type store interface {
	// SweepEvents removes events that are older than keep, of the first limit ones after
	// the place.
	SweepEvents(ctx context.Context, keep time.Duration, from core.EventPlace, limit int) (core.SweptEvents, error)
	// ArchivedSessions returns sessions that were archived longer than keep ago and have
	// no run that has not ended, the first ones first.
	ArchivedSessions(ctx context.Context, keep time.Duration, limit int) ([]core.SessionID, error)
}

// purger removes sessions with everything that belongs to them.
type purger interface {
	// Expired returns how many of the sessions it removed; one that is in use is left.
	Expired(ctx context.Context, ids []core.SessionID) (int, error)
}

// observer is told what was removed (telemetry).
type observer interface {
	// Retained is told of a sweep that ended, and of what it removed.
	Retained(events, sessions int, err error)
}

// audit is the log of what operators did, and had done.
type audit interface {
	Add(ctx context.Context, entry core.AuditEntry) error
}

// Options are what a Worker is made of. All but the times are required.
type Options struct {
	Store    store
	Audit    audit
	Purge    purger
	Observer observer
	Logger   *slog.Logger
	Events   time.Duration // how long events are kept; 0 = for ever
	Archived time.Duration // how long archived sessions are kept; 0 = for ever
}

// Worker removes what was kept long enough.
type Worker struct {
	Options
}

// New returns a worker.
func New(o Options) *Worker { return &Worker{Options: o} }

// Run sweeps at once and then every hour, until ctx ends. A sweep that fails is logged.
func (w *Worker) Run(ctx context.Context) error {
	if w.Events <= 0 && w.Archived <= 0 {
		return nil
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		w.sweep(ctx)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// sweep removes everything that is old by now.
func (w *Worker) sweep(ctx context.Context) {
	start := time.Now()
	sessions, err := w.sessions(ctx) // first: their events go with them
	w.note(ctx, sessions)
	var events int
	if err == nil {
		events, err = w.events(ctx)
	}
	if ctx.Err() != nil { // what is left has time until the next start
		err = nil
	}
	w.Observer.Retained(events, sessions, err)
	switch {
	case err != nil:
		w.Logger.WarnContext(ctx, "retention sweep broken off", "events", events, "sessions", sessions, "err", err)
	case events+sessions > 0:
		w.Logger.InfoContext(ctx, "retention swept", "events", events, "sessions", sessions, "dur", time.Since(start))
	}
}

// note tells the audit log of sessions that were removed. They are gone: an entry that
// cannot be stored is in the server's log.
func (w *Worker) note(ctx context.Context, sessions int) {
	if sessions == 0 {
		return
	}
	details, err := json.Marshal(map[string]any{"sessions": sessions, "archived_for": w.Archived.String()})
	if err == nil {
		err = w.Audit.Add(context.WithoutCancel(ctx), core.AuditEntry{
			ID: core.NewID[core.AuditID](), CreatedAt: core.Now(), Actor: "retention", Action: core.AuditSessionsExpired, Target: "archived sessions", Details: details,
		})
	}
	if err != nil {
		w.Logger.ErrorContext(ctx, "retention not noted in the audit log", "sessions", sessions, "err", err)
	}
}

// sessions purges the sessions that were archived long enough ago.
func (w *Worker) sessions(ctx context.Context) (int, error) {
	removed := 0
	for w.Archived > 0 && ctx.Err() == nil {
		ids, err := w.Store.ArchivedSessions(ctx, w.Archived, sessionBatch)
		if err != nil || len(ids) == 0 {
			return removed, err
		}
		n, err := w.Purge.Expired(ctx, ids)
		removed += n
		// None: they are in use, or another process is removing them.
		if err != nil || n == 0 || len(ids) < sessionBatch {
			return removed, err
		}
		rest(ctx)
	}
	return removed, nil
}

// events removes the events that are old.
func (w *Worker) events(ctx context.Context) (int, error) {
	removed := 0
	var place core.EventPlace
	for w.Events > 0 && ctx.Err() == nil {
		step, err := w.Store.SweepEvents(ctx, w.Events, place, eventBatch)
		removed += int(step.Removed)
		if err != nil || step.Done {
			return removed, err
		}
		place = step.Next
		rest(ctx)
	}
	return removed, nil
}

// rest lets others write.
func rest(ctx context.Context) {
	select {
	case <-time.After(pause):
	case <-ctx.Done():
	}
}
