package repositories

import (
	"context"

	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/core/conversation"
	"bobbin/app/db/models"
)

// RequestCancel cancels a run (conversation.Cancel), and returns it as it is then. It may be
// repeated.
func (r *Runs) RequestCancel(ctx context.Context, tenant core.Tenant, id core.RunID) (core.Run, []core.Event, error) {
	found, err := r.Get(ctx, tenant, id)
	if err != nil {
		return core.Run{}, nil, err
	}
	if found.Status.Ended() {
		return found, nil, nil
	}
	var out core.Decided
	err = changeLog(ctx, r.db, found.SessionID, func(stx *sessionTx) error {
		s, err := stx.loadState(id)
		if err != nil {
			return err
		}
		c := conversation.Cancel(s)
		if c.Run.Status.Ended() && !s.Run.Status.Ended() {
			err = stx.releaseUnsentFiles(c.Run)
		}
		out, err = stx.saveDecided(c, err)
		return err
	})
	if err != nil {
		return core.Run{}, nil, wrapError(err, "run", id)
	}
	return out.Run, out.Events, nil
}

// loadState returns a run and its approvals, for a decision about them.
func (stx *sessionTx) loadState(id core.RunID) (s conversation.State, err error) {
	f, err := stx.loadFacts()
	if s.Now = f.Now.Time; err == nil {
		s.Run, err = findRun(stx.tx, stx.tx.Where("id = ?", id))
	}
	if err == nil {
		s.Approvals, err = approvals(stx.tx.Where("run_id = ?", id))
	}
	return s, wrapError(err, "run", id)
}

// storeChange stores what was decided about a run.
func (stx *sessionTx) storeChange(c conversation.Change) error {
	rows := make([]models.Approval, len(c.Changed))
	for i, a := range c.Changed {
		rows[i] = models.ApprovalFrom(stx.session.Owner, a)
	}
	if err := insertRows(stx.tx.Clauses(clause.OnConflict{UpdateAll: true}), &rows); err != nil {
		return err
	}
	for _, e := range c.Events {
		if err := stx.reportEvent(e); err != nil {
			return err
		}
	}
	if c.Run.ID == "" {
		return nil
	}
	return stx.updateRun(c.Run)
}

// updateRun stores the state of a run, in columns that nobody changes without the session's lock:
// those of a lease belong to the workers while the run is running.
func (stx *sessionTx) updateRun(run core.Run) error {
	changes := map[string]any{"status": string(run.Status), "cancel_requested": run.CancelRequested, "finished_at": run.FinishedAt}
	if run.Status != core.RunRunning {
		changes["lease_owner"], changes["lease_until"], changes["deaths"] = "", nil, run.Deaths
	}
	return stx.tx.Model(&models.Run{}).Where("id = ?", run.ID).UpdateColumns(changes).Error
}

// saveDecided stores a change of a run alone.
func (stx *sessionTx) saveDecided(c conversation.Change, err error) (core.Decided, error) {
	if err == nil {
		err = stx.storeChange(c)
	}
	return core.Decided{Approval: c.Approval, Run: c.Run, Events: stx.events}, err
}
