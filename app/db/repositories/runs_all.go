package repositories

import (
	"context"
	"fmt"
	"slices"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// runHeadRow is a run in a list of all sessions.
type runHeadRow struct {
	models.Run
	Title  string
	Prompt int
}

// activeRunsSQL finds the runs of an owner that have not ended, and those since an id, through indexes.
const activeRunsSQL = "id IN (SELECT id FROM runs WHERE status = 'queued' AND owner = @owner" +
	" UNION ALL SELECT id FROM runs WHERE status IN ('running', 'waiting') AND owner = @owner" +
	" UNION ALL SELECT id FROM runs WHERE id >= @first AND owner = @owner)" +
	" AND EXISTS (SELECT 1 FROM sessions WHERE sessions.id = runs.session_id AND " + visibleSQL + ")"

// ListAll returns the runs of all sessions since a time, and those that have not ended, the newest first.
func (r *Runs) ListAll(ctx context.Context, tenant core.Tenant, q core.RunQuery) (core.RunList, error) {
	limit, after, err := pageStart(q.Limit, q.Cursor, "all runs")
	if err != nil {
		return core.RunList{}, err
	}
	runs := r.db.WithContext(ctx).Model(&models.Run{}).Where(activeRunsSQL, map[string]any{"owner": tenant.Owner, "first": core.FirstID[string](q.From)})
	if tenant.User != "" {
		runs = runs.Where("user_id = ?", tenant.User)
	}
	runs = runs.Session(&gorm.Session{})
	totals, err := countRuns(runs)
	if err != nil {
		return core.RunList{}, err
	}
	switch q.Status {
	case "":
	case core.RunsActive:
		runs = runs.Where("status IN ('queued', 'running', 'waiting')")
	default:
		runs = runs.Where("status = ?", q.Status)
	}
	if after.isSet() {
		runs = runs.Where("id < ?", after.ID)
	}
	var rows []runHeadRow
	err = runs.Select("id, session_id, user_id, status, agent, error, created_at, started_at, finished_at, " +
		"CAST(COALESCE(context ->> 'used', '0') AS bigint) AS prompt, (SELECT title FROM sessions WHERE sessions.id = runs.session_id) AS title").
		Order("id DESC").Limit(limit + 1).Find(&rows).Error
	if err != nil {
		return core.RunList{}, wrapError(err, "runs of", tenant.Owner)
	}
	page, err := pageOf(rows, limit, runHeadRow.toCore, func(row runHeadRow) position { return position{List: "all runs", ID: row.ID} })
	if err == nil {
		err = r.addApprovals(ctx, page.Items)
	}
	return core.RunList{Totals: totals, Items: page.Items, NextCursor: page.NextCursor}, err
}

// countRuns counts the runs by their status.
func countRuns(runs *gorm.DB) (totals core.RunTotals, err error) {
	var rows []struct {
		Status core.RunStatus
		N      int
	}
	err = runs.Select("status, COUNT(*) AS n").Group("status").Scan(&rows).Error
	for _, row := range rows {
		switch row.Status {
		case core.RunQueued:
			totals.Queued = row.N
		case core.RunRunning:
			totals.Running = row.N
		case core.RunWaiting:
			totals.Waiting = row.N
		case core.RunSucceeded:
			totals.Succeeded = row.N
		case core.RunFailed:
			totals.Failed = row.N
		case core.RunCanceled:
			totals.Canceled = row.N
		}
	}
	return totals, wrapError(err, "runs", "")
}

// toCore returns the head of the run.
func (r runHeadRow) toCore() (core.RunHead, error) {
	run, err := r.Run.Core()
	if err != nil {
		return core.RunHead{}, fmt.Errorf("run %s: %w", r.ID, err)
	}
	return core.RunHead{
		ID: run.ID, SessionID: run.SessionID, Title: r.Title, UserID: run.User, Status: run.Status, Agent: run.Agent, Error: run.Error, Prompt: r.Prompt,
		CreatedAt: run.CreatedAt, StartedAt: run.StartedAt, FinishedAt: run.FinishedAt,
	}, nil
}

// addApprovals adds what waiting runs wait for, without long arguments.
func (r *Runs) addApprovals(ctx context.Context, runs []core.RunHead) error {
	var waiting []core.RunID
	for _, run := range runs {
		if run.Status == core.RunWaiting {
			waiting = append(waiting, run.ID)
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	list, err := approvals(r.db.WithContext(ctx).Where("run_id IN ? AND status = 'open'", waiting))
	for _, a := range list {
		if len(a.Arguments) > core.MaxListedArguments {
			a.Arguments = ""
		}
		i := slices.IndexFunc(runs, func(run core.RunHead) bool { return run.ID == a.RunID })
		runs[i].Approvals = append(runs[i].Approvals, a)
	}
	return wrapError(err, "approvals of runs", "")
}
