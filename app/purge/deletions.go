package purge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
)

// Limits and intervals of deletions.
const (
	deletionWorkers = 4                   // concurrently in this process
	deletionPoll    = 5 * time.Second     // between two searches for one that is due
	deletionBeat    = 2 * time.Second     // between two renewals of a lease, and counts of what is left
	deletionRetry   = 2 * time.Second     // before the second attempt; then twice as long each time
	maxDeletionWait = time.Minute         // between two attempts
	deletionLife    = 30 * 24 * time.Hour // how long a finished one can be read
	deletionSweep   = time.Hour
	maxCount        = core.RunLease / 3 // for counting what is left
	maxFollowed     = 5                 // attempts to remove what is written meanwhile
	maxListed       = 1000              // sessions in a report
)

// Deletions are purges that callers of the API request: jobs that survive a restart, end runs
// first, and are retried until they succeed. Safe for concurrent use.
type Deletions struct {
	service  *Service
	store    *repositories.Deletions
	sessions core.SessionStore
	wake     chan struct{} // a deletion was accepted
}

// NewDeletions returns the deletions that service carries out.
func NewDeletions(service *Service, store *repositories.Deletions, sessions core.SessionStore) *Deletions {
	return &Deletions{service: service, store: store, sessions: sessions, wake: make(chan struct{}, deletionWorkers)}
}

// Session accepts the deletion of a session. The session leaves the lists and accepts no more
// messages. With slackPosts what Bobbin posted for it is deleted from Slack as well. If it is being
// deleted, or was, the existing deletion is returned.
func (d *Deletions) Session(ctx context.Context, tenant core.Tenant, id core.SessionID, slackPosts bool) (core.Deletion, error) {
	session, err := d.sessions.Get(ctx, tenant, id)
	if isNotFound(err) {
		if known, unknown := d.store.OfSession(ctx, tenant, id); unknown == nil {
			return known, nil
		}
	}
	if err != nil {
		return core.Deletion{}, err
	}
	accepted, err := d.acceptDeletion(ctx, core.Deletion{Owner: tenant.Owner, Kind: core.DeleteSession, SessionID: id, UserHash: hashOf(session.UserID), SlackPosts: slackPosts})
	if err != nil {
		return accepted, err
	}
	// The session may be in use, or gone already: the deletion does not depend on it.
	_, events, err := d.sessions.Update(ctx, tenant, id, core.SessionPatch{Archived: new(true)})
	if err != nil {
		d.service.Logger.DebugContext(ctx, "session not archived before its deletion", "session_id", id, "err", err)
	}
	d.service.Publisher.Publish(context.WithoutCancel(ctx), events)
	return accepted, nil
}

// User accepts the deletion of everything of a user. While one is in progress, it is returned.
func (d *Deletions) User(ctx context.Context, tenant core.Tenant, user string, slackPosts bool) (core.Deletion, error) {
	return d.acceptDeletion(ctx, core.Deletion{Owner: tenant.Owner, Kind: core.DeleteUser, User: user, UserHash: hashOf(user), SlackPosts: slackPosts})
}

// Get returns a deletion.
func (d *Deletions) Get(ctx context.Context, tenant core.Tenant, id core.DeletionID) (core.Deletion, error) {
	return d.store.Get(ctx, tenant, id)
}

func (d *Deletions) acceptDeletion(ctx context.Context, in core.Deletion) (core.Deletion, error) {
	if err := d.service.admitPosts(in.SlackPosts); err != nil {
		return core.Deletion{}, err
	}
	caller, _ := core.IdentityFrom(ctx)
	in.ID, in.CreatedAt, in.Actor = core.NewID[core.DeletionID](), core.Now(), "api:"+cmp.Or(caller.Key, core.LocalOwner)
	if caller.User != "" {
		in.Actor = "api:" + hashedUser(caller.User)
	}
	accepted, err := d.store.Create(ctx, in)
	if err == nil {
		core.Signal(d.wake)
	}
	return accepted, err
}

// hashOf returns the name of a user in a deletion; empty stays empty.
func hashOf(user string) string {
	if user == "" {
		return ""
	}
	return core.SecretHash(user)
}

// Run executes deletions until ctx ends: those that are accepted here, and those that other
// processes left.
func (d *Deletions) Run(ctx context.Context) error {
	var group errgroup.Group
	for range deletionWorkers {
		group.Go(func() error {
			return core.Repeat(ctx, d.wake, func(ctx context.Context) time.Duration {
				for d.attemptNext(ctx) {
				}
				return deletionPoll
			})
		})
	}
	group.Go(func() error {
		return core.Every(ctx, deletionSweep, func(ctx context.Context) {
			if err := d.store.Sweep(ctx, deletionLife); err != nil && ctx.Err() == nil {
				d.service.Logger.WarnContext(ctx, "old deletions not removed", "err", err)
			}
		})
	})
	return group.Wait()
}

// attemptNext attempts a deletion that is due, and reports whether there was one.
func (d *Deletions) attemptNext(ctx context.Context) bool {
	if ctx.Err() != nil {
		return false
	}
	job, err := d.store.Claim(ctx, d.service.Worker)
	switch {
	case isNotFound(err):
		return false
	case err != nil:
		if ctx.Err() == nil {
			d.service.Logger.WarnContext(ctx, "deletions not claimed", "err", err)
		}
		return false
	}
	if err := d.attemptDeletion(ctx, job); err != nil {
		d.scheduleRetry(ctx, job, err)
	}
	return true
}

// attemptDeletion executes a deletion under its lease.
func (d *Deletions) attemptDeletion(ctx context.Context, job core.Deletion) error {
	if job.Plan == nil {
		plan, err := runUnderLease(ctx, d, job, d.service.planDeletion)
		if err != nil {
			return err
		}
		job.Plan, job.RowsTotal = plan, core.PurgeReport{Tables: plan.Tables}.Rows()
		job.RowsLeft = job.RowsTotal
		if err := d.store.SavePlan(ctx, job); err != nil {
			return err
		}
	}
	report, err := runUnderLease(ctx, d, job, d.executeDeletion)
	if err != nil {
		return err
	}
	if report.Left() > 0 && job.Attempts < maxFollowed {
		return core.Errorf(core.ErrConflict, "%d rows are left: data was written meanwhile", report.Left())
	}
	if n := len(report.Sessions); n > maxListed {
		report.Sessions = report.Sessions[:maxListed]
		report.Notes = append(report.Notes, fmt.Sprintf("the first %d of %d sessions are listed", maxListed, n))
	}
	job.Report = &report
	return d.store.Finish(context.WithoutCancel(ctx), job)
}

// runUnderLease calls do while it renews the lease and counts what is left. The context of do
// ends when the lease is lost.
func runUnderLease[T any](ctx context.Context, d *Deletions, job core.Deletion, do func(context.Context, core.Deletion) (T, error)) (T, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	beats := make(chan struct{})
	go func() {
		defer close(beats)
		if err := d.renewLease(ctx, job); err != nil {
			cancel(err)
		}
	}()
	result, err := do(ctx, job)
	cancel(nil)
	<-beats
	return result, err
}

// renewLease renews the lease until ctx ends. It returns an error if the lease was lost.
func (d *Deletions) renewLease(ctx context.Context, job core.Deletion) error {
	for core.Sleep(ctx, deletionBeat) == nil {
		if err := d.store.Renew(ctx, job); errors.Is(err, core.ErrStale) {
			return err
		}
		if job.Plan != nil { // what a user has elsewhere is not counted: that search takes long
			limited, cancel := context.WithTimeout(ctx, maxCount)
			if left, err := d.service.Store.CountSessions(limited, job.Plan.Sessions); err == nil {
				job.RowsLeft = left.Rows()
			}
			cancel()
		}
	}
	return nil
}

// scheduleRetry leaves a deletion to a later attempt, which may begin immediately if this
// process stops.
func (d *Deletions) scheduleRetry(ctx context.Context, job core.Deletion, cause error) {
	wait := time.Duration(0)
	if job.Error = ""; ctx.Err() == nil {
		wait = min(deletionRetry<<min(job.Attempts-1, 5), maxDeletionWait)
		job.Error = core.Clip(core.ShownMessage(cause, "internal error; see the server's log"), 300) // callers may see it
		d.service.Logger.WarnContext(ctx, "deletion failed, retrying", slog.String("deletion_id", string(job.ID)), slog.Int("attempt", job.Attempts), slog.Duration("wait", wait), slog.Any("err", cause))
	}
	if err := d.store.Retry(context.WithoutCancel(ctx), job, wait); err != nil && !errors.Is(err, core.ErrStale) {
		d.service.Logger.WarnContext(ctx, "deletion not released; its lease will lapse", slog.String("deletion_id", string(job.ID)), slog.Any("err", err))
	}
}

// An attempt at a deletion is a purge with force that knows what there was when the
// deletion began: an earlier attempt may have removed some of it and died.

// planDeletion returns what exists and is to be deleted.
func (s *Service) planDeletion(ctx context.Context, d core.Deletion) (*core.DeletionPlan, error) {
	j, err := s.jobOf(ctx, d)
	if err != nil {
		return nil, err
	}
	report, err := s.preview(ctx, j)
	return &core.DeletionPlan{Sessions: report.Sessions, Tables: report.Tables}, err
}

// jobOf returns the deletion as a job, with what there is now.
func (s *Service) jobOf(ctx context.Context, d core.Deletion) (j job, err error) {
	j.PurgeOptions, j.owner, j.user = core.PurgeOptions{Force: true, Actor: d.Actor, SlackPosts: d.SlackPosts}, d.Owner, d.User
	if d.Kind == core.DeleteSession {
		j.ids = []core.SessionID{d.SessionID}
	}
	if d.Plan != nil {
		j.before = *d.Plan
	}
	j.traces, err = s.findTraces(ctx, j)
	return j, err
}

// executeDeletion removes the target of a deletion and returns its report. Unfinished runs are
// canceled and waited for. It may be called again after an error.
func (d *Deletions) executeDeletion(ctx context.Context, of core.Deletion) (core.PurgeReport, error) {
	j, err := d.service.jobOf(ctx, of)
	if err == nil && of.SlackPosts && of.Plan.SlackPosts == nil { // once the rows are removed, their outcome is not known any more
		planned := j
		planned.ids = of.Plan.Sessions
		var gone core.Purged
		if gone, err = d.service.deletePosts(ctx, planned); err == nil {
			of.Plan.SlackPosts = &gone.Posts
			j.before, err = *of.Plan, d.store.SavePlan(ctx, of)
		}
	}
	if err != nil {
		return core.PurgeReport{}, err
	}
	report, err := d.service.execute(ctx, j)
	if err == nil && of.Attempts > 1 {
		before := map[string]core.PurgedTable{}
		for _, t := range of.Plan.Tables {
			before[t.Table] = t
		}
		for i, t := range report.Tables {
			report.Tables[i].Removed = max(t.Removed, before[t.Table].Removed-t.Left)
			report.Tables[i].Emptied = max(t.Emptied, before[t.Table].Emptied-t.Left)
		}
	}
	return report, err
}
