package purge_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/app/purge"
)

// sweepFake is a store of which a test says how much is old.
type sweepFake struct {
	core.AuditLog
	core.NoObserver

	old     int // events
	ids     []core.SessionID
	brief   []core.SessionID // temporary sessions whose time is over
	inUse   bool             // the sessions
	fails   error
	steps   int
	asked   []time.Duration
	reports []report
	noted   []core.AuditEntry
}

type report struct {
	events, sessions int
	failed           bool
}

func (f *sweepFake) SweepEvents(_ context.Context, keep time.Duration, from core.EventPlace, limit int) (core.SweptEvents, error) {
	f.asked = append(f.asked, keep)
	f.steps++
	n := min(f.old, limit)
	f.old -= n
	from.Seq += int64(n)
	return core.SweptEvents{Removed: int64(n), Next: from, Done: n < limit}, f.fails
}

func (f *sweepFake) ArchivedSessions(_ context.Context, keep time.Duration, limit int) ([]core.SessionID, error) {
	f.asked = append(f.asked, keep)
	return f.ids[:min(len(f.ids), limit)], nil
}

func (f *sweepFake) TemporarySessions(_ context.Context, keep time.Duration, limit int) ([]core.SessionID, error) {
	if keep != core.TemporaryLife {
		return nil, errors.New("another time")
	}
	return f.brief[:min(len(f.brief), limit)], nil
}

func (f *sweepFake) Expired(_ context.Context, ids []core.SessionID, force bool) (int, error) {
	if force {
		f.brief = f.brief[len(ids):]
		return len(ids), nil
	}
	if f.inUse {
		return 0, nil
	}
	f.ids = f.ids[len(ids):]
	return len(ids), nil
}

func (f *sweepFake) Retained(events, sessions int, err error) {
	f.reports = append(f.reports, report{events, sessions, err != nil})
}

func (f *sweepFake) Add(_ context.Context, entry core.AuditEntry) error {
	f.noted = append(f.noted, entry)
	return nil
}

// run lets a worker with these times work for so long.
func runWorker(t *testing.T, f *sweepFake, events, archived, lasting time.Duration) {
	t.Helper()
	w := purge.NewRetentionWorker(purge.RetentionOptions{
		Store: f, Audit: f, PurgeExpired: f.Expired, Observer: f, Logger: slog.New(slog.DiscardHandler), Events: events, Archived: archived,
	})
	ctx, cancel := context.WithTimeout(t.Context(), lasting)
	defer cancel()
	if err := w.Run(ctx); err != nil {
		t.Errorf("got %v, want no error at the end of the context", err)
	}
}

// A sweep takes everything, in steps, at the start and every hour.
func TestRunSweeps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &sweepFake{old: 1200, ids: make([]core.SessionID, 50)}
		runWorker(t, f, 720*time.Hour, 24*time.Hour, 90*time.Minute)
		if want := []report{{1200, 50, false}, {0, 0, false}}; len(f.reports) != 2 || f.reports[0] != want[0] || f.reports[1] != want[1] {
			t.Errorf("got %+v, want %+v", f.reports, want)
		}
		if f.steps != 4 {
			t.Errorf("got %d steps, want 3 of the first sweep and 1 of the second", f.steps)
		}
		if len(f.noted) != 1 || f.noted[0].Action != core.AuditSessionsExpired || string(f.noted[0].Details) != `{"archived_for":"24h0m0s","sessions":50}` {
			t.Errorf("noted %+v, want one entry about 50 sessions", f.noted)
		}
		for _, keep := range f.asked {
			if keep != 720*time.Hour && keep != 24*time.Hour {
				t.Errorf("asked for what is older than %s", keep)
			}
		}
	})
}

// Temporary sessions are removed whatever is kept, and the audit log does not list them.
func TestRunSweepsTemporarySessions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &sweepFake{brief: make([]core.SessionID, 50)}
		runWorker(t, f, 0, 0, 90*time.Minute)
		if want := (report{0, 50, false}); len(f.reports) != 2 || f.reports[0] != want || len(f.noted) != 0 {
			t.Errorf("got %+v and %d entries, want 50 sessions removed in the first sweep", f.reports, len(f.noted))
		}
	})
}

// Data that is kept forever is not searched for.
func TestRunKeeps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &sweepFake{old: 3, ids: []core.SessionID{"a"}}
		runWorker(t, f, 0, 0, time.Minute)
		if f.old != 3 || len(f.ids) != 1 {
			t.Errorf("got sweeps %+v with nothing to remove", f.reports)
		}
		runWorker(t, f, 0, time.Hour, time.Minute)
		if f.old != 3 || len(f.ids) != 0 {
			t.Errorf("events %d, sessions %d; want the sessions gone only", f.old, len(f.ids))
		}
		runWorker(t, f, time.Hour, 0, time.Minute)
		if f.old != 0 {
			t.Errorf("%d old events are left", f.old)
		}
	})
}

// Sessions in use do not keep a sweep busy forever; an error is logged and the next sweep
// follows.
func TestRunGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &sweepFake{ids: make([]core.SessionID, 50), inUse: true, old: 600, fails: errors.New("disk on fire")}
		runWorker(t, f, time.Hour, time.Hour, 90*time.Minute)
		want := []report{{500, 0, true}, {100, 0, true}}
		if len(f.reports) != 2 || f.reports[0] != want[0] || f.reports[1] != want[1] {
			t.Errorf("got %+v, want %+v", f.reports, want)
		}
	})
}

// The end of the process is no failed sweep.
func TestRunStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &sweepFake{old: 1 << 30}
		runWorker(t, f, time.Hour, 0, time.Second)
		if len(f.reports) != 1 || f.reports[0].failed || f.reports[0].events == 0 {
			t.Errorf("got %+v, want one sweep that was broken off in order", f.reports)
		}
	})
}
