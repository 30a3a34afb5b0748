package repositories

import (
	"context"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// RequestCancel cancels a queued run at once, marks a running one for whoever works
// on it, and leaves one that has ended as it is. A waiting one is marked and queued:
// whoever claims it writes its end (core.Run.Suspended). It returns the run as it is
// then, and may be called any number of times.
func (r *Runs) RequestCancel(ctx context.Context, scope core.Scope, id core.RunID) (core.Run, []core.Event, error) {
	seen, err := r.Get(ctx, scope, id)
	if err != nil {
		return core.Run{}, nil, err
	}
	if seen.Status.Ended() {
		return seen, nil, nil
	}
	var run core.Run
	var events []core.Event
	err = inTx(ctx, r.db, func(tx *gorm.DB) error {
		j, err := lockSession(tx, seen.SessionID)
		if err != nil {
			return err
		}
		if run, err = j.cancel(id); err != nil {
			return err
		}
		events = j.events
		return j.close()
	})
	if err != nil {
		return core.Run{}, nil, failure(err, "run", id)
	}
	return run, events, nil
}

// cancel does what the state of the run, which may have moved on, allows. With
// the session locked only a take-over can still change it, and that leaves the
// status alone.
func (j *journal) cancel(id core.RunID) (core.Run, error) {
	var row models.Run
	if err := j.tx.Where("id = ?", id).Take(&row).Error; err != nil {
		return core.Run{}, err
	}
	changes := map[string]any{}
	switch status := core.RunStatus(row.Status); {
	case status == core.RunWaiting:
		if err := j.closeOpen(id, core.ApprovalCanceled); err != nil {
			return core.Run{}, err
		}
		return j.run(id)
	case status == core.RunQueued && row.Attempt == 0:
		now := core.Now()
		row.Status, row.FinishedAt = string(core.RunCanceled), &now
		changes["status"], changes["finished_at"] = row.Status, now
	case !status.Ended():
		row.CancelRequested = true
		changes["cancel_requested"] = true
	}
	if len(changes) > 0 {
		if err := j.tx.Model(&models.Run{}).Where("id = ?", id).UpdateColumns(changes).Error; err != nil {
			return core.Run{}, err
		}
	}
	run, err := row.Core()
	if err == nil && changes["status"] != nil {
		err = j.report(run, core.EventRunCanceled)
	}
	return run, err
}
