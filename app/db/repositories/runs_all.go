package repositories

import (
	"context"
	"maps"
	"slices"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// activeRunsSQL finds the runs of an owner that have not ended, and those since an id, through indexes.
const activeRunsSQL = "id IN (SELECT id FROM runs WHERE status = 'queued' AND owner = @owner" +
	" UNION ALL SELECT id FROM runs WHERE status IN ('running', 'waiting') AND owner = @owner" +
	" UNION ALL SELECT id FROM runs WHERE id >= @first AND owner = @owner)" +
	" AND EXISTS (SELECT 1 FROM sessions WHERE sessions.id = runs.session_id AND " + visibleSQL + ")"

// runTotalsSQL counts runs by their status.
const runTotalsSQL = "COUNT(*) FILTER (WHERE status = 'queued') AS queued, COUNT(*) FILTER (WHERE status = 'running') AS running, " +
	"COUNT(*) FILTER (WHERE status = 'waiting') AS waiting, COUNT(*) FILTER (WHERE status = 'succeeded') AS succeeded, " +
	"COUNT(*) FILTER (WHERE status = 'failed') AS failed, COUNT(*) FILTER (WHERE status = 'canceled') AS canceled"

// ListAll returns the runs of all sessions since a time, and those that have not ended, the newest first unless
// the query wants the oldest.
func (r *Runs) ListAll(ctx context.Context, tenant core.Tenant, q core.RunQuery) (core.RunList, error) {
	newest := keyset[core.RunHead]{list: "all runs", column: "id"}
	if q.Oldest {
		newest.list, newest.ascending = "all runs, oldest first", true
	}
	runs := r.db.WithContext(ctx).Model(&models.Run{}).Where(inScope(tenant)).Where(activeRunsSQL, map[string]any{"owner": tenant.Owner, "first": core.FirstID[string](q.From)}).Session(&gorm.Session{})
	var list core.RunList
	if err := runs.Select(runTotalsSQL).Scan(&list.Totals).Error; err != nil {
		return core.RunList{}, wrapError(err, "runs of", tenant.Owner)
	}
	switch q.Status {
	case "":
	case core.RunsActive:
		runs = runs.Where("status IN ('queued', 'running', 'waiting')")
	default:
		runs = runs.Where("status = ?", q.Status)
	}
	if q.Agent != "" {
		runs = runs.Where("agent = ?", q.Agent)
	}
	if q.Error != "" {
		runs = runs.Where("error ->> 'code' = ?", q.Error)
	}
	page, err := findPage(runs.Select("id, session_id, user_id, status, agent, error, created_at, started_at, finished_at, "+
		"CAST(COALESCE(context ->> 'used', '0') AS bigint) AS prompt, (SELECT title FROM sessions WHERE sessions.id = runs.session_id) AS title"),
		newest, q.PageQuery, longColumns{}, func(row core.RunHead) position { return position{ID: string(row.ID)} })
	if err == nil {
		err = addApprovals(r.db.WithContext(ctx).Where("status = 'open'"), page.Items, func(run *core.RunHead) (core.RunID, *[]core.Approval) { return run.ID, &run.Approvals })
	}
	list.Items, list.NextCursor = page.Items, page.NextCursor
	return list, wrapError(err, "runs of", tenant.Owner)
}

// addApprovals adds to listed runs their approvals that db selects, without long arguments.
func addApprovals[R any](db *gorm.DB, runs []R, of func(*R) (core.RunID, *[]core.Approval)) error {
	lists := map[core.RunID]*[]core.Approval{}
	for i := range runs {
		id, list := of(&runs[i])
		lists[id] = list
	}
	all, err := approvals(db.Omit("result").Where("run_id IN ?", slices.Collect(maps.Keys(lists))))
	for _, a := range all {
		if len(a.Arguments)+len(a.Edited) > core.MaxListedArguments {
			a.Arguments, a.Edited = "", ""
		}
		*lists[a.RunID] = append(*lists[a.RunID], a)
	}
	return err
}
