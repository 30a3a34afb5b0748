package repositories

import (
	"context"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// RequestCancel cancels a queued run immediately, marks a running one for its worker, and
// leaves one that has ended as it is. A waiting one is marked and queued: the worker that
// claims it writes its end (core.Run.Suspended). It returns the run as it is then, and may
// be repeated.
func (r *Runs) RequestCancel(ctx context.Context, tenant core.Tenant, id core.RunID) (core.Run, []core.Event, error) {
	found, err := r.Get(ctx, tenant, id)
	if err != nil {
		return core.Run{}, nil, err
	}
	if found.Status.Ended() {
		return found, nil, nil
	}
	var run core.Run
	var events []core.Event
	err = retryCollisions(func() error {
		return changeLog(ctx, r.db, found.SessionID, func(stx *sessionTx) (err error) {
			if run, err = stx.cancelRun(id); err != nil {
				return err
			}
			run.Input = found.Input
			events = stx.events
			return stx.saveChanges()
		})
	})
	if err != nil {
		return core.Run{}, nil, wrapError(err, "run", id)
	}
	return run, events, nil
}

// cancelRun does what the run's current state allows. While the session is locked only a
// take-over can change the run, and that keeps the status.
func (stx *sessionTx) cancelRun(id core.RunID) (core.Run, error) {
	var row models.Run
	if err := stx.tx.Where("id = ?", id).Take(&row).Error; err != nil {
		return core.Run{}, err
	}
	changes := map[string]any{}
	switch status := core.RunStatus(row.Status); {
	case status == core.RunWaiting:
		if err := stx.closeApprovals(id, core.ApprovalCanceled); err != nil {
			return core.Run{}, err
		}
		return stx.loadRun(id)
	case status == core.RunQueued && row.Attempt == 0:
		now := core.Now()
		row.Status, row.FinishedAt = string(core.RunCanceled), &now
		changes["status"], changes["finished_at"] = row.Status, now
	case !status.Ended():
		row.CancelRequested = true
		changes["cancel_requested"] = true
	}
	if len(changes) > 0 {
		if err := stx.tx.Model(&models.Run{}).Where("id = ?", id).UpdateColumns(changes).Error; err != nil {
			return core.Run{}, err
		}
	}
	run, err := row.Core()
	if err != nil || changes["status"] == nil {
		return run, err
	}
	if err := stx.releaseUnsentFiles(run); err != nil {
		return core.Run{}, err
	}
	return run, stx.reportRun(run, core.EventRunCanceled)
}
