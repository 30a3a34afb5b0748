package purge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"bobbin/app/core"
)

// maxRounds is how often a user's data is searched for: data written meanwhile is removed in
// the next round. What is left after the last one is in the report.
const maxRounds = 4

// job is one purge: of sessions, or of everything of a user.
type job struct {
	core.PurgeOptions
	traces

	owner, user string            // of sessions the user is empty
	before      core.DeletionPlan // what existed when a deletion began; empty = nothing is known
}

// traces is what is to be removed, and where a user's data is besides.
type traces struct {
	ids    []core.SessionID
	shared []core.SessionID // sessions of others in which the user wrote
}

// findTraces returns where the user's data is, or without a user what the job names.
func (s *Service) findTraces(ctx context.Context, j job) (t traces, err error) {
	if j.user == "" {
		return j.traces, nil
	}
	if t.ids, err = s.Store.OfUser(ctx, j.owner, j.user); err == nil {
		t.shared, err = s.Store.Shared(ctx, j.owner, j.user)
	}
	return t, err
}

// preview reports what the job would remove.
func (s *Service) preview(ctx context.Context, j job) (core.PurgeReport, error) {
	there, err := s.count(ctx, j, j.ids)
	if err != nil {
		return core.PurgeReport{}, err
	}
	runs, err := s.Store.Unfinished(ctx, slices.Concat(j.ids, j.shared))
	if err != nil {
		return core.PurgeReport{}, err
	}
	report := core.PurgeReport{Sessions: uniqueIDs(j.ids), DryRun: true, Tables: s.tableLines(there, core.Purged{}), Notes: []string{}}
	for _, run := range runs {
		report.Unfinished = append(report.Unfinished, run.ID)
	}
	if !j.SlackPosts || !j.DryRun {
		return report, nil
	}
	report.SlackPosts = &core.PurgedPosts{}
	for _, id := range report.Sessions {
		posts, err := s.DeletePosts(ctx, id, true)
		if err != nil {
			return report, err
		}
		report.SlackPosts.Add(posts)
	}
	report.Notes = append(report.Notes, fmt.Sprintf("posts in Slack that would be deleted: %d", report.SlackPosts.Found))
	return report, nil
}

// execute removes what the job names, and reports it. Sessions that no longer exist are skipped.
// It may be called again after an error.
func (s *Service) execute(ctx context.Context, j job) (core.PurgeReport, error) {
	var gone core.Purged
	ids := slices.Concat(j.ids, j.before.Sessions)
	for round, more := 0, true; more && round < maxRounds; round++ {
		one, err := s.removeTraces(ctx, j)
		gone.Add(one)
		if j.traces = (traces{}); err == nil {
			j.traces, err = s.findTraces(ctx, j)
		}
		if err != nil {
			s.recordAudit(ctx, j, len(ids), gone, err)
			return core.PurgeReport{}, partialPurgeError(err, gone)
		}
		ids, more = append(ids, j.ids...), len(j.ids)+len(j.shared) > 0 || j.user != "" && one.Rows() > 0
	}
	ids = uniqueIDs(ids)
	n, err := s.Store.Answers(ctx, j.owner, j.user, ids, false) // that mention what an earlier attempt removed
	if gone.Remove("idempotency_keys", n); err != nil {
		return core.PurgeReport{}, partialPurgeError(err, gone)
	}
	if j.user != "" && s.ForgetUser != nil {
		s.ForgetUser(j.user)
	}
	s.recordAudit(ctx, j, len(ids), gone, nil)
	// The log does not name a user: it would be the last trace.
	s.Logger.InfoContext(ctx, "purged", "sessions", len(ids), "user", j.user != "")
	report := core.PurgeReport{Sessions: ids, Notes: []string{}}
	if j.Compact {
		notes, err := s.CompactFiles(ctx, s.Tables)
		if report.Compacted = err == nil; err != nil {
			if ctx.Err() != nil {
				return report, err
			}
			s.Logger.WarnContext(ctx, "database not compacted after a purge", "err", err)
			notes = []string{"the removed bytes are still in the database's files: " + err.Error()}
		}
		report.Notes = append(report.Notes, notes...)
	} else {
		report.Notes = append(report.Notes, "the database's files may hold removed bytes until their space is reused; a purge with compaction removes them")
	}
	left, err := s.count(ctx, j, ids)
	if err != nil {
		return report, err
	}
	report.Tables = s.tableLines(gone, left)
	s.reportPosts(&report, j, gone)
	if j.user != "" && report.Rows() == 0 {
		report.Notes = append(report.Notes, fmt.Sprintf("nothing was found: the owner %s has no data of this user", j.owner))
	}
	return report, nil
}

// removeTraces removes what was found: sessions, and what a user has elsewhere.
func (s *Service) removeTraces(ctx context.Context, j job) (core.Purged, error) {
	if err := s.stopRuns(ctx, slices.Concat(j.ids, j.shared), j.Force); err != nil {
		return core.Purged{}, err
	}
	gone, err := s.deletePosts(ctx, j)
	if err != nil {
		return gone, err
	}
	for _, id := range j.ids {
		one, err := s.Store.Session(ctx, id, j.Force)
		if err != nil && !isNotFound(err) { // another purge removed it meanwhile
			return gone, err
		}
		gone.Add(one)
		// Notifies its watchers, and requests that wait for one of its runs.
		s.publishRemoval(ctx, id, one)
	}
	// Last: by now requests in progress have stored their responses, as their session is gone.
	n, err := s.Store.Answers(ctx, j.owner, j.user, j.ids, false)
	if gone.Remove("idempotency_keys", n); err != nil || j.user == "" {
		return gone, err
	}
	unended := core.RefuseUnended
	if j.Force {
		unended = core.AllowUnleased
	}
	for _, id := range j.shared {
		one, err := s.Store.FromShared(ctx, j.owner, j.user, id, unended)
		if errors.Is(err, core.ErrStale) || isNotFound(err) { // it was forked or purged meanwhile: the next round handles it
			continue
		}
		if err != nil {
			return gone, err
		}
		s.Publisher.Publish(ctx, one.Events)
		one.Events = nil
		gone.Add(one)
	}
	rest, err := s.Store.User(ctx, j.owner, j.user)
	gone.Add(rest)
	return gone, err
}

// count counts what exists of the sessions, and of the user: also in sessions that came meanwhile.
func (s *Service) count(ctx context.Context, j job, ids []core.SessionID) (core.Purged, error) {
	var rest core.Purged
	if j.user != "" {
		are, err := s.Store.OfUser(ctx, j.owner, j.user)
		if err == nil {
			ids = uniqueIDs(slices.Concat(ids, are))
			rest, err = s.Store.CountUser(ctx, j.owner, j.user)
		}
		if err != nil {
			return rest, err
		}
	}
	there, err := s.Store.CountSessions(ctx, ids)
	if err != nil {
		return there, err
	}
	there.Add(rest)
	n, err := s.Store.Answers(ctx, j.owner, j.user, ids, true)
	there.Remove("idempotency_keys", n)
	return there, err
}

// tableLines returns a line for every table, including unaffected ones.
func (s *Service) tableLines(done, left core.Purged) []core.PurgedTable {
	list := make([]core.PurgedTable, 0, len(s.Tables))
	for _, table := range s.Tables {
		list = append(list, core.PurgedTable{
			Table: table, Removed: done.Removed[table], Emptied: done.Emptied[table], Left: left.Removed[table] + left.Emptied[table],
		})
	}
	return list
}

// cancelTime is how long a canceled run may take to end: longer than a lease and a heartbeat.
const cancelTime = 45 * time.Second

// stopRuns ensures that no run of the sessions is active. Without force an unfinished run is an
// ErrConflict; with force it is canceled and waited for.
func (s *Service) stopRuns(ctx context.Context, ids []core.SessionID, force bool) error {
	runs, err := s.Store.Unfinished(ctx, ids)
	if err != nil || len(runs) == 0 {
		return err
	}
	if !force {
		return core.Errorf(core.ErrConflict, "run %s in session %s has not ended (%d such runs in total): wait for it, or cancel with --force",
			runs[0].ID, runs[0].SessionID, len(runs))
	}
	for i := len(runs) - 1; i >= 0; i-- { // queued ones first, so that none of them begins
		err := s.CancelRun(ctx, core.Tenant{Owner: runs[i].Owner}, runs[i].ID)
		if err != nil && !isNotFound(err) {
			return err
		}
	}
	for until := time.Now().Add(cancelTime); ; {
		runs, err := s.Store.Unfinished(ctx, ids)
		if err != nil {
			return err
		}
		busy := core.RunID("")
		for _, run := range runs {
			if run.Leased {
				busy = run.ID
			}
		}
		switch {
		case busy == "":
			return nil
		case !time.Now().Before(until):
			return core.Errorf(core.ErrConflict, "run %s was canceled but has not ended; nothing was removed, try again in a minute", busy)
		}
		if err := core.Sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

func isNotFound(err error) bool { return errors.Is(err, core.ErrNotFound) }

// admitPosts returns ErrInvalid if posts in Slack are to be deleted, but Slack is off.
func (s *Service) admitPosts(wanted bool) error {
	if wanted && s.DeletePosts == nil {
		return core.Errorf(core.ErrInvalid, "posts in Slack cannot be deleted: Slack is off (slack.bot_token, slack.client_id)")
	}
	return nil
}

// deletePosts deletes the posts of the sessions from Slack, if they are to be. It may be repeated
// while the sessions exist. The posts of the sessions that a deletion began with are gone already.
func (s *Service) deletePosts(ctx context.Context, j job) (gone core.Purged, err error) {
	for _, id := range j.ids {
		if !j.SlackPosts || s.DeletePosts == nil || j.before.SlackPosts != nil && slices.Contains(j.before.Sessions, id) {
			continue
		}
		posts, err := s.DeletePosts(ctx, id, false)
		gone.Posts.Add(posts)
		if err != nil {
			return gone, err
		}
	}
	return gone, nil
}

// reportPosts adds to a report what became of the posts in Slack.
func (s *Service) reportPosts(report *core.PurgeReport, j job, gone core.Purged) {
	p := gone.Posts
	if j.before.SlackPosts != nil {
		p.Add(*j.before.SlackPosts)
	}
	switch wanted := j.SlackPosts; {
	case wanted && s.DeletePosts == nil:
		report.Notes = append(report.Notes, "what was posted in Slack stays there: Slack is off")
	case wanted:
		report.SlackPosts = &p
		report.Notes = append(report.Notes, fmt.Sprintf("posts in Slack: %d deleted, %d not there any more, %d that Slack did not delete (the log says why), %d of which Slack does not say whether they are there",
			p.Deleted, p.Gone, p.Refused, p.Unknown))
	case gone.Removed["slack_posts"] > 0:
		report.Notes = append(report.Notes, "what was posted in Slack stays there; with --slack-posts (slack_posts) a purge deletes it first, afterwards it is no longer known")
	}
}
