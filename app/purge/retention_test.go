package purge_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/app/purge"
	"bobbin/tests/compare"
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

func (f *sweepFake) Count(counter core.Counter, n int, labels ...string) {
	switch {
	case labels[0] == "events":
		f.reports = append(f.reports, report{events: n})
	case labels[0] == "sessions":
		f.reports[len(f.reports)-1].sessions = n
	case counter == core.CountSweeps:
		f.reports[len(f.reports)-1].failed = labels[0] == "failed"
	}
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
	compare.Error(t, "w.Run(ctx): want no error at the end of the context", nil, w.Run(ctx))
}

// A sweep takes everything, in steps, at the start and every hour; temporary sessions whatever is kept, and without an entry
// in the audit log. Sessions in use do not keep it busy forever; after an error the next sweep follows. The end of the process is
// no failed sweep.
func TestRetentionWorker(t *testing.T) {
	t.Parallel()
	const month, day = 720 * time.Hour, 24 * time.Hour
	for name, tt := range map[string]struct {
		fake             *sweepFake
		events, archived time.Duration
		want             []report
		steps            int
		noted            string
	}{
		"all":       {&sweepFake{old: 1200, ids: make([]core.SessionID, 50)}, month, day, []report{{1200, 50, false}, {}}, 4, `sessions.expired {"archived_for":"24h0m0s","sessions":50}`},
		"temporary": {&sweepFake{brief: make([]core.SessionID, 50)}, 0, 0, []report{{0, 50, false}, {}}, 0, ""},
		"in use, and errors": {
			&sweepFake{ids: make([]core.SessionID, 50), inUse: true, old: 600, fails: errors.New("disk on fire")}, month, day, []report{{500, 0, true}, {100, 0, true}}, 2, "",
		},
		"kept forever":     {&sweepFake{old: 3, ids: []core.SessionID{"a"}}, 0, 0, []report{{}, {}}, 0, ""},
		"events for ever":  {&sweepFake{old: 3, ids: []core.SessionID{"a"}}, 0, day, []report{{0, 1, false}, {}}, 0, `sessions.expired {"archived_for":"24h0m0s","sessions":1}`},
		"archive for ever": {&sweepFake{old: 3, ids: []core.SessionID{"a"}}, month, 0, []report{{3, 0, false}, {}}, 2, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			runWorker(t, tt.fake, tt.events, tt.archived, 90*time.Minute)
			noted := ""
			for _, e := range tt.fake.noted {
				noted += e.Action + " " + string(e.Details)
			}
			if !slices.Equal(tt.fake.reports, tt.want) || tt.fake.steps != tt.steps || noted != tt.noted {
				t.Errorf("%s: got %+v in %d steps, noted %s, want %+v in %d, %s", name, tt.fake.reports, tt.fake.steps, noted, tt.want, tt.steps, tt.noted)
			}
			for _, keep := range tt.fake.asked {
				if keep != tt.events && keep != tt.archived {
					t.Errorf("%s: asked for what is older than %s", name, keep)
				}
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		f := &sweepFake{old: 1 << 30}
		runWorker(t, f, time.Hour, 0, time.Second)
		if len(f.reports) != 1 || f.reports[0].failed || f.reports[0].events == 0 {
			t.Errorf("got %+v, want one sweep that was broken off in order", f.reports)
		}
	})
}
