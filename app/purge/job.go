package purge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"bobbin/app/core"
)

// Limits and intervals of deletions.
const (
	deletionWorkers = 4                   // concurrently in this process
	deletionPoll    = 5 * time.Second     // between two searches for one that is due
	deletionBeat    = 2 * time.Second     // between two renewals of a lease, and counts of what is left
	deletionRetry   = 2 * time.Second     // before the second attempt; then twice as long each time
	maxDeletionWait = time.Minute         // between two attempts
	deletionLife    = 30 * 24 * time.Hour // how long a finished one can be read
	maxCount        = core.RunLease / 3   // for counting what is left
	maxLeftWait     = core.RunLease / 2   // at most, before data that was written meanwhile is removed too
	maxListed       = 1000                // sessions in a report
	recoverEvery    = 5 * time.Second     // between two searches for abandoned sessions
	recoverBatch    = 20
)

// Run executes deletions until ctx ends: those that are accepted here, and those that other
// processes left. It also removes what processes left behind that died, or lost their database, during an import, a
// fork or a deletion (every 5 s), and what is too old (every hour).
func (s *Service) Run(ctx context.Context) error {
	context.AfterFunc(ctx, func() { s.ends.Add(1) })
	var group errgroup.Group
	for range deletionWorkers {
		group.Go(func() error {
			return core.Repeat(ctx, s.wake, func(ctx context.Context) time.Duration {
				for s.attemptNext(ctx) {
				}
				return deletionPoll
			})
		})
	}
	group.Go(func() error { return core.Every(ctx, recoverEvery, s.recoverAll) })
	group.Go(func() error { return core.Every(ctx, sweepEvery, s.sweepOnce) })
	return group.Wait()
}

// recoverAll removes what was left behind in the sessions that are abandoned now, or the sessions.
func (s *Service) recoverAll(ctx context.Context) {
	ids, err := s.Store.Abandoned(ctx, s.Worker, recoverBatch)
	for _, id := range ids {
		var events []core.Event
		events, err = s.Store.Recover(ctx, id, s.Worker)
		s.Publisher.Publish(ctx, events)
		if err != nil {
			break
		}
		s.Logger.InfoContext(ctx, "abandoned session recovered", slog.String("session_id", string(id)), slog.Bool("removed", len(events) > 0))
	}
	if err != nil && ctx.Err() == nil {
		s.Logger.WarnContext(ctx, "abandoned sessions not recovered", slog.Any("err", err))
	}
}

// attemptNext attempts a deletion that is due, and reports whether there was one.
func (s *Service) attemptNext(ctx context.Context) bool {
	if ctx.Err() != nil {
		return false
	}
	d, err := s.Deletions.Claim(ctx, s.Worker)
	if err != nil {
		if !isNotFound(err) && ctx.Err() == nil {
			s.Logger.WarnContext(ctx, "deletions not claimed", "err", err)
		}
		return false
	}
	cause := s.attempt(ctx, d)
	if cause == nil {
		return true
	}
	wait := time.Duration(0)
	if d.Error = ""; ctx.Err() == nil { // else this process stops: a later attempt may begin immediately
		wait = min(deletionRetry<<min(d.Attempts-1, 5), maxDeletionWait)
		d.Error = core.Clip(core.ShownMessage(cause, "internal error; see the server's log"), 300) // callers may see it
		s.Logger.WarnContext(ctx, "deletion failed, retrying", slog.String("deletion_id", string(d.ID)), slog.Int("attempt", d.Attempts), slog.Duration("wait", wait), slog.Any("err", cause))
	}
	if err := s.Deletions.Retry(context.WithoutCancel(ctx), d, wait); err != nil && !errors.Is(err, core.ErrStale) {
		s.Logger.WarnContext(ctx, "deletion not released; its lease will lapse", slog.String("deletion_id", string(d.ID)), slog.Any("err", err))
	}
	return true
}

// attempt executes a deletion under its lease.
func (s *Service) attempt(ctx context.Context, d core.Deletion) error {
	if d.Plan == nil || d.Plan.Tables == nil {
		if err := s.runUnderLease(ctx, &d, s.makePlan); err != nil {
			return err
		}
	}
	for wait := deletionRetry; ; wait *= 2 {
		if err := s.runUnderLease(ctx, &d, s.execute); err != nil {
			return err
		}
		if d.Report.Left() == 0 || wait > maxLeftWait {
			break
		}
		if err := core.Sleep(ctx, wait); err != nil { // data was written meanwhile
			return err
		}
	}
	s.recordAudit(ctx, d)
	// The log does not name a user: it would be the last trace.
	s.Logger.InfoContext(ctx, "purged", "sessions", len(d.Report.Sessions), "user", d.User != "")
	if n := len(d.Report.Sessions); n > maxListed {
		d.Report.Sessions = d.Report.Sessions[:maxListed]
		d.Report.Notes = append(d.Report.Notes, fmt.Sprintf("the first %d of %d sessions are listed", maxListed, n))
	}
	return s.Deletions.Finish(context.WithoutCancel(ctx), d)
}

// runUnderLease calls do while it renews the lease and counts what is left. The context of do
// ends when the lease is lost.
func (s *Service) runUnderLease(ctx context.Context, d *core.Deletion, do func(context.Context, *core.Deletion) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	beats := make(chan struct{})
	go func(d core.Deletion) {
		defer close(beats)
		if err := s.renewLease(ctx, d); err != nil {
			cancel(err)
		}
	}(*d)
	err := do(ctx, d)
	cancel(nil)
	<-beats
	return err
}

// renewLease renews the lease until ctx ends. It returns an error if the lease was lost.
func (s *Service) renewLease(ctx context.Context, d core.Deletion) error {
	for core.Sleep(ctx, deletionBeat) == nil {
		if err := s.Deletions.Renew(ctx, d); errors.Is(err, core.ErrStale) {
			return err
		}
		if d.RowsTotal > 0 { // what a user has elsewhere is not counted: that search takes long
			limited, cancel := context.WithTimeout(ctx, maxCount)
			if left, err := s.Store.Count(limited, d.Owner, "", d.Plan.Sessions); err == nil {
				d.RowsLeft = core.PurgeReport{Tables: left}.Rows()
			}
			cancel()
		}
	}
	return nil
}

// recordAudit records in the audit log what was removed. It names neither sessions nor users, as
// these are gone. The removal is done: an entry that cannot be stored is in the server's log.
func (s *Service) recordAudit(ctx context.Context, d core.Deletion) {
	action, target := core.AuditUserPurged, hashedUser(d.User)
	if d.User == "" {
		action, target = core.AuditSessionsPurged, fmt.Sprintf("sessions: %d", len(d.Report.Sessions))
	}
	if d.User == "" && len(d.Report.Sessions) == 0 {
		return // nothing was done
	}
	removed, emptied := map[string]int64{}, map[string]int64{}
	for _, t := range d.Report.Tables {
		if t.Removed > 0 {
			removed[t.Table] = t.Removed
		}
		if t.Emptied > 0 {
			emptied[t.Table] = t.Emptied
		}
	}
	err := s.Audit.Add(ctx, core.AuditEntry{Actor: d.Actor, Action: action, Owner: d.Owner, Target: target}, map[string]any{"removed": removed, "emptied": emptied, "complete": true})
	if err != nil {
		s.Logger.ErrorContext(ctx, "purge not recorded in the audit log", "action", action, "err", err)
	}
}

// findSessions returns the sessions that a deletion removes, and those of others in which its user wrote.
func (s *Service) findSessions(ctx context.Context, d core.Deletion) (own, shared []core.SessionID, err error) {
	switch d.Kind {
	case core.DeleteSession:
		return []core.SessionID{d.SessionID}, nil, nil
	case core.DeleteSessions:
		return d.Plan.Sessions, nil, nil
	}
	if own, err = s.Store.OfUser(ctx, d.Owner, d.User); err == nil {
		shared, err = s.Store.Shared(ctx, d.Owner, d.User)
	}
	return own, shared, err
}

func (s *Service) makePlan(ctx context.Context, d *core.Deletion) error {
	own, _, err := s.findSessions(ctx, *d)
	if err != nil {
		return err
	}
	plan := core.DeletionPlan{Sessions: uniqueIDs(own)}
	if plan.Tables, err = s.Store.Count(ctx, d.Owner, d.User, own); err != nil {
		return err
	}
	d.Plan, d.RowsTotal = &plan, core.PurgeReport{Tables: plan.Tables}.Rows()
	d.RowsLeft = d.RowsTotal
	return s.Deletions.SavePlan(ctx, *d)
}

// execute removes what a deletion names, and reports it. Unfinished runs are canceled and waited for; sessions that no
// longer exist are skipped. It may be called again after an error.
func (s *Service) execute(ctx context.Context, d *core.Deletion) error {
	own, shared, err := s.findSessions(ctx, *d)
	if err == nil {
		err = s.stopRuns(ctx, slices.Concat(own, shared))
	}
	if err == nil {
		err = s.deletePosts(ctx, d, own)
	}
	for _, id := range own {
		if err == nil {
			if err = s.removeSession(ctx, id, true); isNotFound(err) { // another deletion removed it meanwhile
				err = nil
			}
		}
	}
	for _, id := range shared {
		if err == nil {
			var events []core.Event
			events, err = s.Store.FromShared(ctx, d.Owner, d.User, id)
			s.Publisher.Publish(ctx, events)
			if errors.Is(err, core.ErrStale) || isNotFound(err) { // it was forked or removed meanwhile: it is looked for again
				err = nil
			}
		}
	}
	if err == nil && d.User != "" {
		if s.ForgetUser != nil {
			s.ForgetUser(d.User)
		}
		err = s.Store.User(ctx, d.Owner, d.User)
	}
	if err == nil { // that mention what an earlier attempt removed
		_, err = s.Store.Answers(ctx, d.Owner, d.User, d.Plan.Sessions, false)
	}
	if err != nil {
		return err
	}
	left, err := s.Store.Count(ctx, d.Owner, d.User, d.Plan.Sessions)
	if err == nil {
		d.Report = s.report(*d, left)
	}
	return err
}

// removeSession removes a session, and notifies its watchers and requests that wait for one of its runs.
func (s *Service) removeSession(ctx context.Context, id core.SessionID, force bool) error {
	events, err := s.Store.Session(ctx, id, force)
	s.Publisher.Publish(ctx, events)
	return err
}

// report compares what there was when a deletion began with what is left, in a line for every table. The first note is about the
// files.
func (s *Service) report(d core.Deletion, left []core.PurgedTable) *core.PurgeReport {
	report := core.PurgeReport{Sessions: d.Plan.Sessions, Notes: []string{"the database's files may hold removed bytes until their space is reused; a purge with compaction removes them"}}
	before := map[string]core.PurgedTable{}
	for _, t := range d.Plan.Tables {
		before[t.Table] = t
	}
	for _, l := range left {
		b := before[l.Table]
		report.Tables = append(report.Tables, core.PurgedTable{
			Table: l.Table, Removed: max(b.Removed-l.Removed, 0), Emptied: max(b.Emptied-l.Emptied, 0), Left: l.Removed + l.Emptied,
		})
	}
	switch p := d.Plan.SlackPosts; {
	case p != nil:
		report.SlackPosts = p
		report.Notes = append(report.Notes, fmt.Sprintf("posts in Slack: %d deleted, %d not there any more, %d that Slack did not delete (the log says why), %d of which Slack does not say whether they are there",
			p.Deleted, p.Gone, p.Refused, p.Unknown))
	case d.SlackPosts:
		report.Notes = append(report.Notes, "what was posted in Slack stays there: Slack is off")
	case before["slack_posts"].Removed > 0:
		report.Notes = append(report.Notes, "what was posted in Slack stays there; with --slack-posts (slack_posts) a purge deletes it first, afterwards it is no longer known")
	}
	if d.User != "" && report.Rows() == 0 {
		report.Notes = append(report.Notes, fmt.Sprintf("nothing was found: the owner %s has no data of this user", d.Owner))
	}
	return &report
}

// cancelTime is how long a canceled run may take to end: longer than a lease and a heartbeat.
const cancelTime = 45 * time.Second

// stopRuns cancels the unfinished runs of the sessions, and waits for those that somebody works on.
func (s *Service) stopRuns(ctx context.Context, ids []core.SessionID) error {
	runs, err := s.Store.Unfinished(ctx, ids)
	if err != nil {
		return err
	}
	for _, run := range slices.Backward(runs) { // queued ones first, so that none of them begins
		if err := s.CancelRun(ctx, core.Tenant{Owner: run.Owner}, run.ID); err != nil && !isNotFound(err) {
			return err
		}
	}
	for until := time.Now().Add(cancelTime); ; {
		if runs, err = s.Store.Unfinished(ctx, ids); err != nil {
			return err
		}
		busy := slices.IndexFunc(runs, func(run core.UnfinishedRun) bool { return run.Leased })
		switch {
		case busy < 0:
			return nil
		case !time.Now().Before(until):
			return core.Errorf(core.ErrConflict, "run %s was canceled but has not ended; nothing was removed, try again in a minute", runs[busy].ID)
		}
		if err := core.Sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// deletePosts deletes the posts of the sessions from Slack, if they are to be, except of those of which the plan says that
// they are gone. Then it adds the sessions to the plan: once the rows are removed, their outcome is not known any more.
func (s *Service) deletePosts(ctx context.Context, d *core.Deletion, ids []core.SessionID) error {
	plan := *d.Plan
	if d.SlackPosts && s.DeletePosts != nil {
		var posts core.PurgedPosts
		if plan.SlackPosts != nil {
			posts = *plan.SlackPosts
		}
		for _, id := range ids {
			if plan.SlackPosts != nil && slices.Contains(plan.Sessions, id) {
				continue
			}
			one, err := s.DeletePosts(ctx, id, false)
			if err != nil {
				return err
			}
			posts.Add(one)
		}
		plan.SlackPosts = &posts
	}
	plan.Sessions = uniqueIDs(slices.Concat(plan.Sessions, ids))
	d.Plan = &plan
	return s.Deletions.SavePlan(ctx, *d)
}
