package retention_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/app/retention"
)

// fake is a store of which a test says how much is old.
type fake struct {
	old     int // events
	ids     []core.SessionID
	inUse   bool // the sessions
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

func (f *fake) SweepEvents(_ context.Context, keep time.Duration, from core.EventPlace, limit int) (core.SweptEvents, error) {
	f.asked = append(f.asked, keep)
	f.steps++
	n := min(f.old, limit)
	f.old -= n
	from.Seq += int64(n)
	return core.SweptEvents{Removed: int64(n), Next: from, Done: n < limit}, f.fails
}

func (f *fake) ArchivedSessions(_ context.Context, keep time.Duration, limit int) ([]core.SessionID, error) {
	f.asked = append(f.asked, keep)
	return f.ids[:min(len(f.ids), limit)], nil
}

func (f *fake) Expired(_ context.Context, ids []core.SessionID) (int, error) {
	if f.inUse {
		return 0, nil
	}
	f.ids = f.ids[len(ids):]
	return len(ids), nil
}

func (f *fake) Retained(events, sessions int, err error) {
	f.reports = append(f.reports, report{events, sessions, err != nil})
}

func (f *fake) Add(_ context.Context, entry core.AuditEntry) error {
	f.noted = append(f.noted, entry)
	return nil
}

// run lets a worker with these times work for so long.
func run(t *testing.T, f *fake, events, archived, lasting time.Duration) {
	t.Helper()
	w := retention.New(retention.Options{
		Store: f, Audit: f, Purge: f, Observer: f, Logger: slog.New(slog.DiscardHandler), Events: events, Archived: archived,
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
		f := &fake{old: 1200, ids: make([]core.SessionID, 50)}
		run(t, f, 720*time.Hour, 24*time.Hour, 90*time.Minute)
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

// What is to be kept for ever is not looked for.
func TestRunKeeps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{old: 3, ids: []core.SessionID{"a"}}
		run(t, f, 0, 0, time.Minute)
		if len(f.reports) != 0 || f.old != 3 {
			t.Errorf("got sweeps %+v with nothing to remove", f.reports)
		}
		run(t, f, 0, time.Hour, time.Minute)
		if f.old != 3 || len(f.ids) != 0 {
			t.Errorf("events %d, sessions %d; want the sessions gone only", f.old, len(f.ids))
		}
		run(t, f, time.Hour, 0, time.Minute)
		if f.old != 0 {
			t.Errorf("%d old events are left", f.old)
		}
	})
}

// Sessions in use do not keep a sweep at work for ever; a fault is told and the next
// sweep comes.
func TestRunGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{ids: make([]core.SessionID, 50), inUse: true, old: 600, fails: errors.New("disk on fire")}
		run(t, f, time.Hour, time.Hour, 90*time.Minute)
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
		f := &fake{old: 1 << 30}
		run(t, f, time.Hour, 0, time.Second)
		if len(f.reports) != 1 || f.reports[0].failed || f.reports[0].events == 0 {
			t.Errorf("got %+v, want one sweep that was broken off in order", f.reports)
		}
	})
}
