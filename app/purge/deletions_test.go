package purge_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// deleting runs the service until do returns.
func (w *world) deleting(do func(ctx context.Context)) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	synctest.Wait()
	do(ctx)
	cancel()
	compare.Error(w.t, "from Run", nil, <-ended)
}

// after returns the first deletion as it is after the time, and when it is due.
func (w *world) after(d time.Duration) (got core.Deletion, due time.Time) {
	w.t.Helper()
	time.Sleep(d)
	synctest.Wait()
	var row struct {
		ID    core.DeletionID
		DueAt time.Time
	}
	must.Do(w.t, w.Gorm.WithContext(w.t.Context()).Table("deletions").Order("created_at, id").Take(&row).Error)
	return must.Get(repositories.NewDeletions(w.Gorm).Get(w.t.Context(), scope(), row.ID))(w.t), row.DueAt
}

// A session that is to be deleted leaves the lists and is removed immediately; asked for
// again, when it is gone, the same deletion is answered.
func TestDeleteSession(t *testing.T) {
	simulate(t, func(t *testing.T, w *world) {
		w.session("a")
		ctx := core.WithIdentity(t.Context(), core.Identity{Owner: "shop", User: "kim"})
		accepted := must.Get(w.DeleteSession(ctx, scope(), id("a"), false))(t)
		s := must.Get(w.sessions.Get(ctx, scope(), id("a")))(t)
		compare.True(t, accepted.UserHash == core.SecretHash("kim") && s.ArchivedAt != nil, "accepted %+v, archived at %v", accepted, s.ArchivedAt)
		w.deleting(func(ctx context.Context) {
			compare.Error(t, "a session that never was", core.ErrNotFound, compare.ErrorOf(w.DeleteSession(ctx, scope(), id("gone"), false)))
			done, _ := w.after(0)
			compare.True(t, done.Status == core.DeletionSucceeded && done.Report != nil, "got %+v, want it done", done)
			w.wantLeft()
			compare.Equal(t, "asked for again", accepted.ID, must.Get(w.DeleteSession(ctx, scope(), id("a"), false))(t).ID)
		})
		actor := w.noted()[0].Actor
		compare.True(t, strings.HasPrefix(actor, "api:user sha256:") && !strings.Contains(actor, "kim"), "the audit log names %q", actor)
	})
}

// An attempt that fails is followed by others, later and later, and what is wrong is
// shown; at last it succeeds, with what earlier attempts removed in its report.
func TestDeletionIsRetried(t *testing.T) {
	simulate(t, func(t *testing.T, w *world) {
		w.session("own")
		w.breaks("own")
		w.deleting(func(ctx context.Context) {
			_, err := w.Purge(ctx, core.Purge{Owner: "shop", User: "kim"})
			compare.Error(t, "of an operator who waits for it", core.ErrUnavailable, err)
			if first, due := w.after(0); first.Status != core.DeletionPending || first.Error != "internal error; see the server's log" || time.Until(due).Round(time.Second) != 2*time.Second {
				t.Errorf("after the first attempt: %+v, due in %s", first, time.Until(due))
			}
			// The others begin after 5, 10, 20, 40 and 75 s: each at the next look for one that is due.
			if later, due := w.after(80 * time.Second); later.Attempts != 6 || time.Until(due).Round(time.Second) != 55*time.Second {
				t.Errorf("after 80 s: %d attempts, the next in %s, want waits of 2 s, 4 s … 1 min", later.Attempts, time.Until(due))
			}
			w.exec("DROP TRIGGER fire")
			done, _ := w.after(2 * time.Minute)
			compare.True(t, done.Status == core.DeletionSucceeded && done.Report.Left() == 0 && tables(*done.Report)[1].Removed == 2, "got %+v, want the messages in the report", done.Report)
		})
	})
}

// An attempt ends when another process has taken its deletion over: it waits for a run
// that does not end, and its heartbeat learns of it.
func TestDeletionEndsWithItsLease(t *testing.T) {
	simulate(t, func(t *testing.T, w *world) {
		w.session("a")
		w.accept("a", "kim")
		w.exec("UPDATE runs SET lease_until = '2001-01-01' WHERE status = 'running'")
		w.deleting(func(ctx context.Context) {
			must.Get(w.DeleteSession(ctx, scope(), id("a"), false))(t)
			synctest.Wait()
			w.exec("UPDATE deletions SET lease_owner = 'two/1', due_at = '2001-01-01'")
			time.Sleep(3 * time.Second)
			w.exec("UPDATE runs SET lease_until = '1999-01-01'") // it would be waited for no longer
			w.after(10 * time.Second)
			w.wantLeft("a")
			compare.Equal(t, "canceled", 1, len(w.canceled))
		})
	})
}

// What a stopping process has not done is left to the next one immediately.
func TestDeletionIsReleasedAtAStop(t *testing.T) {
	simulate(t, func(t *testing.T, w *world) {
		w.session("a")
		w.accept("a", "kim")
		w.deleting(func(ctx context.Context) {
			must.Get(w.DeleteSession(ctx, scope(), id("a"), false))(t)
			time.Sleep(5 * time.Second)
		})
		left, due := w.after(0)
		compare.True(t, left.Status == core.DeletionPending && left.Error == "" && !due.After(time.Now()), "got %+v, due in %s; want it due immediately and nothing wrong", left, time.Until(due))
	})
}

// A lease is renewed while it is still being counted what there is, however long that takes.
func TestDeletionIsPlannedUnderItsLease(t *testing.T) {
	simulate(t, func(t *testing.T, w *world) {
		w.session("own")
		must.Do(t, w.Gorm.Callback().Query().Before("gorm:query").Register("slow", func(tx *gorm.DB) {
			if tx.Statement.Table != "deletions" {
				time.Sleep(3 * time.Second)
			}
		}))
		w.deleting(func(ctx context.Context) {
			must.Get(w.DeleteUser(ctx, scope(), "kim", false))(t)
			if counting, due := w.after(50 * time.Second); counting.Plan != nil || time.Until(due) < core.RunLease-3*time.Second {
				t.Errorf("the lease ends in %s with the plan %v, want it renewed every two seconds of planning", time.Until(due), counting.Plan)
			}
			done, _ := w.after(10 * time.Minute)
			compare.Equal(t, "status, attempts", []any{core.DeletionSucceeded, 1}, []any{done.Status, done.Attempts})
		})
	})
}

// Posts in Slack are deleted before anything else, and what became of them is in the report, also
// if a later attempt removes the rest. Without Slack such a deletion is refused.
func TestDeletionOfPosts(t *testing.T) {
	simulate(t, func(t *testing.T, w *world) {
		w.session("own")
		w.breaks("own")
		w.deleting(func(ctx context.Context) {
			compare.Error(t, "without Slack: want invalid", core.ErrInvalid, compare.ErrorOf(w.DeleteSession(ctx, scope(), id("own"), true)))
			asked, forgotten := 0, ""
			w.ForgetUser = func(user string) { forgotten = user }
			w.DeletePosts = func(_ context.Context, of core.SessionID, dry bool) (core.PurgedPosts, error) {
				if asked++; asked == 1 || of != id("own") || dry {
					return core.PurgedPosts{}, core.Errorf(core.ErrUnavailable, "Slack is away")
				}
				return core.PurgedPosts{Found: 3, Deleted: 2, Refused: 1}, nil
			}
			must.Get(w.DeleteUser(ctx, scope(), "kim", true))(t)
			w.after(6 * time.Second) // the second attempt deletes the posts and fails
			w.exec("DROP TRIGGER fire")
			done, _ := w.after(time.Minute)
			if done.Status != core.DeletionSucceeded || done.Attempts < 3 || asked != 2 || *done.Report.SlackPosts != (core.PurgedPosts{Found: 3, Deleted: 2, Refused: 1}) {
				t.Errorf("got %+v with the report %+v after %d calls", done, done.Report, asked)
			}
			compare.Equal(t, "forgotten", "kim", forgotten)
		})
	})
}

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
