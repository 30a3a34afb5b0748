package purge

import (
	"context"

	"bobbin/app/core"
)

// count counts what there is of what is purged.
type count func(context.Context) (core.Purged, error)

// foresee reports what would be done.
func (s *Service) foresee(ctx context.Context, ids, touched []core.SessionID, marks core.PurgeMarks, count count) (core.PurgeReport, error) {
	there, err := count(ctx)
	if err != nil {
		return core.PurgeReport{}, err
	}
	n, err := s.Store.Answers(ctx, marks, true)
	if err != nil {
		return core.PurgeReport{}, err
	}
	there.Remove("idempotency_keys", n)
	runs, err := s.Store.Unfinished(ctx, touched)
	if err != nil {
		return core.PurgeReport{}, err
	}
	report := core.PurgeReport{Sessions: listed(ids), DryRun: true, Tables: s.tables(there, core.Purged{}), Notes: []string{}}
	for _, run := range runs {
		report.Unfinished = append(report.Unfinished, run.ID)
	}
	return report, nil
}

// proof is what a report is made of.
type proof struct {
	ids     []core.SessionID
	gone    core.Purged
	marks   core.PurgeMarks
	compact bool
	count   count
}

// prove takes the bytes out of the files if that is wanted, and counts what is left.
func (s *Service) prove(ctx context.Context, p proof) (core.PurgeReport, error) {
	report := core.PurgeReport{Sessions: listed(p.ids), Notes: []string{}}
	if p.compact {
		notes, err := s.Files.Compact(ctx, s.Tables)
		if report.Compacted = err == nil; err != nil {
			if ctx.Err() != nil {
				return report, err
			}
			s.Logger.WarnContext(ctx, "database not compacted after a purge", "err", err)
			notes = []string{"the removed bytes are still in the database's files: " + err.Error()}
		}
		report.Notes = append(report.Notes, notes...)
	} else {
		report.Notes = append(report.Notes, "the database's files may hold removed bytes until their space is used again; a purge with compaction takes them out")
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
	report.Tables = s.tables(p.gone, left)
	return report, nil
}

// tables returns a line for every table, also where nothing was.
func (s *Service) tables(done, left core.Purged) []core.PurgedTable {
	list := make([]core.PurgedTable, 0, len(s.Tables))
	for _, table := range s.Tables {
		list = append(list, core.PurgedTable{
			Table: table, Removed: done.Removed[table], Emptied: done.Emptied[table], Left: left.Removed[table] + left.Emptied[table],
		})
	}
	return list
}

// listed makes an empty list of none, for JSON.
func listed(ids []core.SessionID) []core.SessionID {
	return append([]core.SessionID{}, ids...)
}
