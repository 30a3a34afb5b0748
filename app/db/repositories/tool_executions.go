package repositories

import (
	"context"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/core/conversation"
	"bobbin/app/db/models"
)

// StartTools commits that tools are about to start that must not run twice. A call that
// already has a row starts again: the caller has decided so. Like Write it returns
// core.ErrStale for an attempt that is over.
func (r *Runs) StartTools(ctx context.Context, id core.RunID, attempt int, list []core.ToolExecution) error {
	err := inTx(ctx, r.db, func(tx *gorm.DB) error {
		run, err := findRows[models.Run](tx.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}).
			Where("id = ? AND attempt = ? AND status = 'running'", id, attempt))
		if err != nil {
			return err
		}
		if len(run) == 0 {
			return conversation.StaleRun(id)
		}
		rows := make([]core.ToolExecution, 0, len(list))
		known := map[string]bool{}
		for _, e := range list {
			if known[e.CallID] {
				continue
			}
			known[e.CallID] = true
			e.RunID, e.SessionID = core.RunID(run[0].ID), core.SessionID(run[0].SessionID)
			e.Owner, e.Attempt, e.FinishedAt = run[0].Owner, run[0].Attempt, nil
			if e.StartedAt.IsZero() {
				e.StartedAt = core.Now()
			}
			rows = append(rows, e)
		}
		return insertRows(tx.Clauses(clause.OnConflict{
			Columns:   []clause.Column{{Name: "run_id"}, {Name: "call_id"}},
			DoUpdates: clause.AssignmentColumns([]string{"attempt", "tool", "started_at", "finished_at"}),
		}), &rows)
	})
	return wrapError(err, "run", id)
}

// ToolExecutions returns the executions of a run in the order in which they started. One
// without FinishedAt, of an attempt that is over, was interrupted: its effect is unknown.
func (r *Runs) ToolExecutions(ctx context.Context, id core.RunID) ([]core.ToolExecution, error) {
	list, err := findRows[core.ToolExecution](byID(ctx, r.db, "run", id).Where("run_id = ?", id).Order("started_at, call_id"))
	return list, wrapError(err, "run", id)
}

// finishTools marks the executions of the calls that the messages answer as finished.
func (stx *sessionTx) finishTools(run core.RunID, messages []core.Message) error {
	const finish = "UPDATE tool_executions SET finished_at = % WHERE run_id = % AND call_id = % AND finished_at IS NULL"
	var err error
	for _, m := range messages {
		if m.Role == core.RoleTool && m.ToolCallID != "" && err == nil {
			_, err = stx.change.Update(finish, "timestamptz uuid text", core.Now(), string(run), m.ToolCallID)
		}
	}
	return err
}
