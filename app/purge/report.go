package purge

import (
	"context"

	"bobbin/app/core"
)

// countFunc counts what a purge would remove.
type countFunc func(context.Context) (core.Purged, error)

// previewInput is the input of a preview.
type previewInput struct {
	ids     []core.SessionID // to be removed
	touched []core.SessionID // to be removed or changed
	marks   core.PurgeMarks
	count   countFunc
	posts   bool // in Slack, to be deleted as well
}

// previewPurge reports what would be removed.
func (s *Service) previewPurge(ctx context.Context, p previewInput) (core.PurgeReport, error) {
	there, err := p.count(ctx)
	if err != nil {
		return core.PurgeReport{}, err
	}
	n, err := s.Store.Answers(ctx, p.marks, true)
	if err != nil {
		return core.PurgeReport{}, err
	}
	there.Remove("idempotency_keys", n)
	runs, err := s.Store.Unfinished(ctx, p.touched)
	if err != nil {
		return core.PurgeReport{}, err
	}
	report := core.PurgeReport{Sessions: nonNil(p.ids), DryRun: true, Tables: s.tableLines(there, core.Purged{}), Notes: []string{}}
	for _, run := range runs {
		report.Unfinished = append(report.Unfinished, run.ID)
	}
	if p.posts {
		err = s.countPosts(ctx, &report)
	}
	return report, err
}

// reportInput is the input of a report.
type reportInput struct {
	ids     []core.SessionID
	gone    core.Purged
	before  *core.DeletionPlan // nil = nothing is known
	marks   core.PurgeMarks
	options core.PurgeOptions
	count   countFunc
}

// buildReport compacts the files if requested, counts what is left, and returns the report.
func (s *Service) buildReport(ctx context.Context, p reportInput) (core.PurgeReport, error) {
	report := core.PurgeReport{Sessions: nonNil(p.ids), Notes: []string{}}
	if p.options.Compact {
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
	left, err := p.count(ctx)
	if err != nil {
		return report, err
	}
	n, err := s.Store.Answers(ctx, p.marks, true)
	if err != nil {
		return report, err
	}
	left.Remove("idempotency_keys", n)
	report.Tables = s.tableLines(p.gone, left)
	s.reportPosts(&report, p)
	return report, nil
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

// nonNil returns the ids, an empty list instead of nil, for JSON.
func nonNil(ids []core.SessionID) []core.SessionID {
	return append([]core.SessionID{}, ids...)
}
