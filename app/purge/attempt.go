package purge

import (
	"context"
	"maps"
	"slices"

	"bobbin/app/core"
)

// An attempt at a deletion is a purge with force that knows what there was when the
// deletion began: an earlier attempt may have removed some of it and died.

// planDeletion returns what exists and is to be deleted.
func (s *Service) planDeletion(ctx context.Context, d core.Deletion) (*core.DeletionPlan, error) {
	j := job{owner: d.Owner, user: d.User}
	var err error
	if d.Kind == core.DeleteSession {
		j.traces, err = s.tracesOf(ctx, d.Owner, []core.SessionID{d.SessionID})
	} else {
		j.traces, err = s.findTraces(ctx, d.Owner, d.User)
	}
	if err != nil {
		return nil, err
	}
	report, err := s.preview(ctx, j)
	return &core.DeletionPlan{Sessions: report.Sessions, Tables: report.Tables, Marks: slices.Sorted(maps.Keys(j.marks.IDs))}, err
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
	j := job{
		PurgeOptions: core.PurgeOptions{Force: true, Actor: d.Actor, SlackPosts: d.SlackPosts}, owner: d.Owner, user: d.User, before: d.Plan,
		traces: traces{ids: d.Plan.Sessions, marks: core.PurgeMarks{Owner: d.Owner, IDs: marksOfPlan(d.Plan)}},
	}
	if d.Kind == core.DeleteUser {
		var err error
		if j.traces, err = s.findTraces(ctx, d.Owner, d.User); err != nil {
			return core.PurgeReport{}, err
		}
	}
	report, err := s.execute(ctx, j)
	if err == nil && d.Attempts > 1 {
		last := report.Tables
		before := map[string]core.PurgedTable{}
		for _, t := range d.Plan.Tables {
			before[t.Table] = t
		}
		for i, t := range last {
			last[i].Removed = max(t.Removed, before[t.Table].Removed-t.Left)
			last[i].Emptied = max(t.Emptied, before[t.Table].Emptied-t.Left)
		}
		report.Tables = last
	}
	return report, err
}

// countLeft counts the rows that are left of the plan's sessions. It does not count what a user
// has elsewhere: that search takes long.
func (s *Service) countLeft(ctx context.Context, p *core.DeletionPlan) (int64, error) {
	left, err := s.Store.CountSessions(ctx, p.Sessions)
	return left.Rows(), err
}
