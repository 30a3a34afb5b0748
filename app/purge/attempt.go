package purge

import (
	"context"
	"slices"

	"bobbin/app/core"
)

// An attempt at a deletion is a purge with force that knows what there was when the
// deletion began: an earlier attempt may have removed some of it and died.

// planDeletion returns what exists and is to be deleted.
func (s *Service) planDeletion(ctx context.Context, d core.Deletion) (*core.DeletionPlan, error) {
	var report core.PurgeReport
	var marks core.PurgeMarks
	var err error
	if d.Kind == core.DeleteSession {
		ids := []core.SessionID{d.SessionID}
		marks = core.PurgeMarks{Owner: d.Owner, IDs: marksOf(ids)}
		if err = s.markBlobs(ctx, &marks, ids, "", ""); err == nil {
			report, err = s.previewPurge(ctx, previewInput{ids: ids, touched: ids, marks: marks, count: s.countSessions(ids)})
		}
	} else {
		in := core.PurgeUser{Owner: d.Owner, User: d.User}
		var found traces
		if found, err = s.findTraces(ctx, in); err == nil {
			marks = found.marks
			report, err = s.previewPurge(ctx, found.previewInput(s.countUser(nil, in), false))
		}
	}
	if err != nil {
		return nil, err
	}
	plan := &core.DeletionPlan{Sessions: report.Sessions, Tables: report.Tables}
	for id := range marks.IDs {
		plan.Marks = append(plan.Marks, id)
	}
	slices.Sort(plan.Marks)
	return plan, nil
}

// marksOfPlan returns the ids of what existed when a deletion began.
func marksOfPlan(p *core.DeletionPlan) map[string]bool {
	marks := marksOf(p.Sessions)
	for _, id := range p.Marks {
		marks[id] = true
	}
	return marks
}

// executeDeletion removes the target of a deletion and returns its report. Unfinished runs are
// canceled and waited for. It may be called again after an error.
func (s *Service) executeDeletion(ctx context.Context, d core.Deletion) (core.PurgeReport, error) {
	report, err := s.purgeTarget(ctx, d)
	if err != nil {
		return report, err
	}
	if d.Attempts > 1 {
		report.Tables = withEarlier(report.Tables, d.Plan.Tables)
	}
	return report, nil
}

func (s *Service) purgeTarget(ctx context.Context, d core.Deletion) (core.PurgeReport, error) {
	options := core.PurgeOptions{Force: true, Actor: d.Actor, SlackPosts: d.SlackPosts}
	if d.Kind == core.DeleteUser {
		return s.purgeUser(ctx, core.PurgeUser{Owner: d.Owner, User: d.User, PurgeOptions: options}, d.Plan)
	}
	return s.purgeSessions(ctx, core.PurgeSessions{Owner: d.Owner, PurgeOptions: options}, d.Plan.Sessions, core.PurgeMarks{Owner: d.Owner, IDs: marksOfPlan(d.Plan)}, d.Plan)
}

// countLeft counts the rows that are left of the plan's sessions. It does not count what a user
// has elsewhere: that search takes long.
func (s *Service) countLeft(ctx context.Context, p *core.DeletionPlan) (int64, error) {
	left, err := s.Store.CountSessions(ctx, p.Sessions)
	return left.Rows(), err
}

// withEarlier adds to the lines of the last attempt what earlier attempts removed: what existed
// at the beginning and is not left.
func withEarlier(last, planned []core.PurgedTable) []core.PurgedTable {
	before := map[string]core.PurgedTable{}
	for _, t := range planned {
		before[t.Table] = t
	}
	for i, t := range last {
		last[i].Removed = max(t.Removed, before[t.Table].Removed-t.Left)
		last[i].Emptied = max(t.Emptied, before[t.Table].Emptied-t.Left)
	}
	return last
}
