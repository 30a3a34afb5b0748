package purge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"bobbin/app/core"
)

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

// makePlan stores what exists and is to be deleted.
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
	if err == nil && d.User != "" {
		err = s.removeUser(ctx, d.Owner, d.User, shared)
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

// removeUser removes what a user has outside of the user's own sessions.
func (s *Service) removeUser(ctx context.Context, owner, user string, shared []core.SessionID) error {
	for _, id := range shared {
		events, err := s.Store.FromShared(ctx, owner, user, id)
		s.Publisher.Publish(ctx, events)
		if err != nil && !errors.Is(err, core.ErrStale) && !isNotFound(err) { // it was forked or removed meanwhile: it is looked for again
			return err
		}
	}
	if s.ForgetUser != nil {
		s.ForgetUser(user)
	}
	return s.Store.User(ctx, owner, user)
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
