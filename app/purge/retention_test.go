package purge_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/tests/compare"
)

// sweeps is an Observer that keeps what sweeps removed.
type sweeps struct {
	core.NoObserver
	reports []report
}

type report struct {
	events, sessions int
	failed           bool
}

func (f *sweeps) Count(counter core.Counter, n int, labels ...string) {
	switch {
	case labels[0] == "events":
		f.reports = append(f.reports, report{events: n})
	case labels[0] == "sessions":
		f.reports[len(f.reports)-1].sessions = n
	case counter == core.CountSweeps:
		f.reports[len(f.reports)-1].failed = labels[0] == "failed"
	}
}

// runWorker runs the service with these times for so long, and returns what it removed.
func (w *world) runWorker(events, archived, lasting time.Duration) []report {
	w.t.Helper()
	f := &sweeps{}
	w.Observer, w.KeepEvents, w.KeepArchived = f, events, archived
	ctx, cancel := context.WithTimeout(w.t.Context(), lasting)
	defer cancel()
	compare.Error(w.t, "from Run: want no error at the end of the context", nil, w.Run(ctx))
	return f.reports
}

// old adds a session with so many old events, and sessions of which the columns say that they are old, too.
func (w *world) old(events, sessions int, columns string) {
	w.t.Helper()
	w.empty("log", "kim")
	w.exec(`INSERT INTO session_events WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT ?, i, 'shop', 'resync', NULL, '1990-01-01 00:00:00+00:00', '{}' FROM n`, events+1, id("log"))
	w.exec("UPDATE sessions SET last_event_seq = ? WHERE id = ?", events+1, id("log"))
	for n := range sessions {
		w.empty(fmt.Sprint("s", n), "kim")
		w.exec("UPDATE sessions SET "+columns+" WHERE id = ?", id(fmt.Sprint("s", n)))
	}
}

// A sweep takes everything, in steps, at the start and every hour; temporary sessions whatever is kept, and without an entry
// in the audit log. Sessions in use do not keep it busy forever; after an error the next sweep follows. The end of the process is
// no failed sweep.
func TestRetentionWorker(t *testing.T) {
	t.Parallel()
	const month, day, archived = 720 * time.Hour, 24 * time.Hour, "archived_at = '1990-01-01'"
	for name, tt := range map[string]struct {
		events, sessions int
		columns          string
		keep, archive    time.Duration
		want             []report
		noted            string
	}{
		"all":              {1200, 21, archived, month, day, []report{{1200, 21, false}, {}}, `sessions.expired {"archived_for":"24h0m0s","sessions":21}`},
		"temporary":        {3, 21, "temporary = true, updated_at = '1990-01-01'", 0, 0, []report{{0, 21, false}, {}}, ""},
		"in use":           {3, 21, archived + ", busy = 'import', busy_until = '2001-01-01'", month, day, []report{{3, 0, false}, {}}, ""},
		"kept forever":     {3, 1, archived, 0, 0, []report{{}, {}}, ""},
		"events for ever":  {3, 1, archived, 0, day, []report{{0, 1, false}, {}}, `sessions.expired {"archived_for":"24h0m0s","sessions":1}`},
		"archive for ever": {3, 1, archived, month, 0, []report{{3, 0, false}, {}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(t *testing.T, w *world) {
				w.old(tt.events, tt.sessions, tt.columns)
				got, noted := w.runWorker(tt.keep, tt.archive, 61*time.Minute), ""
				for _, e := range w.noted() {
					noted += e.Action + " " + string(e.Details)
				}
				compare.True(t, slices.Equal(got, tt.want) && noted == tt.noted, "got %+v, noted %s, want %+v, %s", got, noted, tt.want, tt.noted)
			})
		})
	}
	t.Run("errors", func(t *testing.T) {
		simulate(t, func(t *testing.T, w *world) {
			w.old(3, 1, archived)
			w.exec("CREATE TRIGGER fire BEFORE DELETE ON session_events BEGIN SELECT RAISE(ABORT, 'disk on fire'); END")
			compare.Equal(t, "reports", []report{{0, 0, true}, {0, 0, true}}, w.runWorker(month, 0, 61*time.Minute), cmp.AllowUnexported(report{}))
		})
	})
	t.Run("a session that stays", func(t *testing.T) {
		simulate(t, func(t *testing.T, w *world) {
			w.old(3, 3, archived)
			w.breaks("s1")
			compare.Equal(t, "reports", []report{{0, 1, true}}, w.runWorker(month, day, time.Minute), cmp.AllowUnexported(report{}))
		})
	})
	t.Run("broken off in order", func(t *testing.T) {
		simulate(t, func(t *testing.T, w *world) {
			w.old(1200, 0, "")
			compare.Equal(t, "reports", []report{{1000, 0, false}}, w.runWorker(time.Hour, 0, 30*time.Millisecond), cmp.AllowUnexported(report{}))
		})
	})
}
