package purge_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/app/purge"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// jobs is a store of one deletion at most.
type jobs struct {
	mu       sync.Mutex
	job      *core.Deletion // guarded by mu
	due      time.Time      // guarded by mu
	waits    []time.Duration
	renewals int
	lost     bool // the lease
}

func (j *jobs) Create(_ context.Context, d core.Deletion) (core.Deletion, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.job == nil {
		d.Status = core.DeletionPending
		j.job = &d
	}
	return *j.job, nil
}

func (j *jobs) Get(context.Context, core.Tenant, core.DeletionID) (core.Deletion, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return *j.job, nil
}

func (j *jobs) OfSession(context.Context, core.Tenant, core.SessionID) (core.Deletion, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.job == nil {
		return core.Deletion{}, core.Errorf(core.ErrNotFound, "none")
	}
	return *j.job, nil
}

func (j *jobs) Claim(context.Context, string) (core.Deletion, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.job == nil || j.job.Status != core.DeletionPending || time.Now().Before(j.due) {
		return core.Deletion{}, core.Errorf(core.ErrNotFound, "none is due")
	}
	j.job.Status = core.DeletionRunning
	j.job.Attempts++
	return *j.job, nil
}

func (j *jobs) Renew(_ context.Context, d core.Deletion) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.renewals++
	if j.lost {
		return core.Errorf(core.ErrStale, "the lease was lost")
	}
	j.job.RowsLeft = d.RowsLeft
	return nil
}

func (j *jobs) SavePlan(_ context.Context, d core.Deletion) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.job.Plan, j.job.RowsTotal = d.Plan, d.RowsTotal
	return nil
}

func (j *jobs) Retry(_ context.Context, d core.Deletion, wait time.Duration) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.lost {
		return core.Errorf(core.ErrStale, "the lease was lost")
	}
	j.waits = append(j.waits, wait)
	j.job.Status, j.job.Error, j.due = core.DeletionPending, d.Error, time.Now().Add(wait)
	return nil
}

func (j *jobs) Finish(_ context.Context, d core.Deletion) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.job.Status, j.job.Report = core.DeletionSucceeded, d.Report
	return nil
}

func (j *jobs) Sweep(context.Context, time.Duration) error { return nil }

// renewed returns how often the lease was renewed.
func (j *jobs) renewed() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.renewals
}

// now returns the deletion as it is.
func (j *jobs) now() core.Deletion {
	d, _ := j.Get(context.Background(), core.Tenant{}, "")
	return d
}

// lists is sessions of which all but "gone" exist.
type lists struct {
	core.SessionStore

	archived []core.SessionID
}

func (l *lists) Get(_ context.Context, _ core.Tenant, id core.SessionID) (core.Session, error) {
	if id == "gone" {
		return core.Session{}, core.Errorf(core.ErrNotFound, "it is gone")
	}
	return core.Session{ID: id, UserID: "kim"}, nil
}

func (l *lists) Update(_ context.Context, _ core.Tenant, id core.SessionID, p core.SessionPatch) (core.Session, []core.Event, error) {
	if *p.Archived {
		l.archived = append(l.archived, id)
	}
	return core.Session{}, nil, core.Errorf(core.ErrConflict, "it is busy") // which does not matter
}

// deleting runs deletions in a bubble of time until do returns.
func deleting(t *testing.T, f *fake, j *jobs, do func(ctx context.Context, d *purge.Deletions, l *lists), change ...func(*purge.Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		l := &lists{}
		o := purge.Options{
			Store: f, CancelRun: f.Cancel, CompactFiles: f.Compact, Publisher: f, Audit: f, Tables: []string{"sessions", "messages", "memories"}, Logger: slog.New(slog.DiscardHandler), Worker: "one/1",
		}
		for _, c := range change {
			c(&o)
		}
		d := purge.NewDeletions(purge.New(o), j, l)
		ended := make(chan error)
		go func() { ended <- d.Run(ctx) }()
		synctest.Wait()
		do(ctx, d, l)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func scope() core.Tenant { return core.Tenant{Owner: "shop"} }

// A session that is to be deleted leaves the lists and is removed immediately; asked for
// again, when it is gone, the same deletion is answered.
func TestDeleteSession(t *testing.T) {
	t.Parallel()
	f, j := &fake{}, &jobs{}
	deleting(t, f, j, func(ctx context.Context, d *purge.Deletions, l *lists) {
		compare.Error(t, "a session that never was", core.ErrNotFound, compare.ErrorOf(d.Session(ctx, scope(), "gone", false)))
		ctx = core.WithIdentity(ctx, core.Identity{Owner: "shop", User: "kim"})
		accepted, err := d.Session(ctx, scope(), "a", false)
		if err != nil || accepted.UserHash != core.SecretHash("kim") || len(l.archived) != 1 {
			t.Errorf("accepted %+v, %v, archived %v", accepted, err, l.archived)
		}
		synctest.Wait()
		if done := j.now(); done.Status != core.DeletionSucceeded || done.Report == nil || len(f.removed) != 1 {
			t.Errorf("got %+v, removed %v", done, f.removed)
		}
		if again, err := d.Session(ctx, scope(), "gone", false); err != nil || again.ID != accepted.ID {
			t.Errorf("asked for again: %+v, %v", again, err)
		}
		if actor := f.noted[0].Actor; !strings.HasPrefix(actor, "api:user sha256:") || strings.Contains(actor, "kim") {
			t.Errorf("the audit log names %q", actor)
		}
	})
}

// An attempt that fails is followed by others, later and later, and what is wrong is
// shown; at last it succeeds, with what earlier attempts removed in its report.
func TestDeletionIsRetried(t *testing.T) {
	t.Parallel()
	f, j := &fake{breaks: "own"}, &jobs{}
	deleting(t, f, j, func(ctx context.Context, d *purge.Deletions, _ *lists) {
		must.Get(d.User(ctx, scope(), "kim", false))(t)
		synctest.Wait()
		if first := j.now(); first.Status != core.DeletionPending || first.Error != "internal error; see the server's log" {
			t.Errorf("after the first attempt: %+v", first)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := len(j.waits); n < 10 || j.waits[0] != 2*time.Second || j.waits[1] != 4*time.Second || j.waits[n-1] != time.Minute {
			t.Errorf("waits of %v, want 2 s, 4 s … 1 min", j.waits)
		}
		j.mu.Lock() // which the next attempt begins with
		f.breaks = ""
		j.mu.Unlock()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if done := j.now(); done.Status != core.DeletionSucceeded || done.Plan == nil || done.Report.Left() != 0 {
			t.Errorf("got %+v, want it done", done)
		}
	})
}

// An attempt ends when another process has taken its deletion over: it waits for a run
// that does not end, and its heartbeat learns of it.
func TestDeletionEndsWithItsLease(t *testing.T) {
	t.Parallel()
	f, j := &fake{runs: []core.UnfinishedRun{{ID: "r", SessionID: "a", Owner: "shop", Leased: true}}}, &jobs{lost: true}
	deleting(t, f, j, func(ctx context.Context, d *purge.Deletions, _ *lists) {
		must.Get(d.Session(ctx, scope(), "a", false))(t)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if j.renewed() != 1 || len(f.removed) != 0 || len(f.canceled) != 1 {
			t.Errorf("%d renewals, removed %v, canceled %v; want one, none, and the run", j.renewed(), f.removed, f.canceled)
		}
	})
}

// What a stopping process has not done is left to the next one immediately.
func TestDeletionIsReleasedAtAStop(t *testing.T) {
	t.Parallel()
	f, j := &fake{runs: []core.UnfinishedRun{{ID: "r", SessionID: "a", Owner: "shop", Leased: true}}}, &jobs{}
	deleting(t, f, j, func(ctx context.Context, d *purge.Deletions, _ *lists) {
		must.Get(d.Session(ctx, scope(), "a", false))(t)
		time.Sleep(5 * time.Second)
		synctest.Wait()
	})
	if len(j.waits) != 1 || j.waits[0] != 0 || j.now().Error != "" {
		t.Errorf("waits %v, error %q; want it due immediately and nothing wrong", j.waits, j.now().Error)
	}
}

// A lease is renewed while it is still being counted what there is, however long that takes.
func TestDeletionIsPlannedUnderItsLease(t *testing.T) {
	t.Parallel()
	f, j := &fake{slow: time.Minute}, &jobs{}
	deleting(t, f, j, func(ctx context.Context, d *purge.Deletions, _ *lists) {
		must.Get(d.User(ctx, scope(), "kim", false))(t)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if n := j.renewed(); n < 10 {
			t.Errorf("%d renewals in 30 s of planning, want one every two seconds", n)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if done := j.now(); done.Status != core.DeletionSucceeded || done.Attempts != 1 {
			t.Errorf("got %+v, want it done", done)
		}
	})
}

// Posts in Slack are deleted before anything else, and what became of them is in the report, also
// if a later attempt removes the rest. Without Slack such a deletion is refused.
func TestDeletionOfPosts(t *testing.T) {
	t.Parallel()
	f, j, asked := &fake{breaks: "own"}, &jobs{}, 0
	deleting(t, f, j, func(ctx context.Context, d *purge.Deletions, _ *lists) {
		must.Get(d.User(ctx, scope(), "slack:T1/U1", true))(t)
		time.Sleep(6 * time.Second) // the second attempt deletes the posts and fails
		synctest.Wait()
		j.mu.Lock()
		f.breaks = ""
		j.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		done := j.now()
		if done.Status != core.DeletionSucceeded || done.Attempts != 3 || asked != 2 || *done.Report.SlackPosts != (core.PurgedPosts{Found: 3, Deleted: 2, Refused: 1}) {
			t.Errorf("got %+v with the report %+v after %d calls", done, done.Report, asked)
		}
		compare.Equal(t, "forgotten", []string{"slack:T1/U1"}, f.forgotten)
	}, func(o *purge.Options) {
		o.ForgetUser = func(user string) { f.forgotten = append(f.forgotten, user) }
		o.DeletePosts = func(_ context.Context, id core.SessionID, dry bool) (core.PurgedPosts, error) {
			if asked++; asked == 1 || id != "own" || dry {
				return core.PurgedPosts{}, core.Errorf(core.ErrUnavailable, "Slack is away")
			}
			return core.PurgedPosts{Found: 3, Deleted: 2, Refused: 1}, nil
		}
	})
	deleting(t, &fake{}, &jobs{}, func(ctx context.Context, d *purge.Deletions, _ *lists) {
		compare.Error(t, "without Slack: want invalid", core.ErrInvalid, compare.ErrorOf(d.Session(ctx, scope(), "a", true)))
	})
}
