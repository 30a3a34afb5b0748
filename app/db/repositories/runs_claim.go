package repositories

import (
	"context"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Claim starts the session's oldest queued run and leases it to the worker, if no
// other run of the session is active; its message enters the log. ErrNotFound
// means that there is nothing to start. Of any number of workers that claim at
// once one gets the run.
func (r *Runs) Claim(ctx context.Context, session core.SessionID, worker string) (core.Claimed, error) {
	if err := r.anyQueued(ctx, session); err != nil {
		return core.Claimed{}, failure(err, "session", session)
	}
	var out core.Claimed
	err := inTx(ctx, r.db, func(tx *gorm.DB) error {
		j, err := lockSession(tx, session)
		if err != nil {
			return err
		}
		f, err := j.facts("", "")
		if err != nil {
			return err
		}
		if f.Active > 0 || f.NextID == "" {
			return core.Errorf(core.ErrNotFound, "session %s has no run to start", session)
		}
		out, err = j.claim(f, worker)
		return err
	})
	if err != nil {
		return core.Claimed{}, failure(err, "session", session)
	}
	return out, nil
}

// anyQueued returns ErrNotFound if no run of the session waits, without a lock: each turn
// asks at its end, and mostly nobody waits. Nothing is missed: who accepts a run and
// finds none active starts it in the same transaction, so that whatever waits for the
// run that has just ended was there before the end.
func (r *Runs) anyQueued(ctx context.Context, session core.SessionID) error {
	var n int64
	err := r.db.WithContext(ctx).Model(&models.Run{}).Where("session_id = ? AND status = 'queued'", session).Count(&n).Error
	if err == nil && n == 0 {
		err = core.Errorf(core.ErrNotFound, "session %s has no run to start", session)
	}
	return err
}

// claim starts the oldest queued run.
func (j *journal) claim(f facts, worker string) (core.Claimed, error) {
	var row models.Run
	err := j.tx.Model(&row).Clauses(clause.Returning{Columns: runColumns(j.tx)}).Where("id = ?", f.NextID).UpdateColumns(map[string]any{
		"status":      string(core.RunRunning),
		"attempt":     gorm.Expr("attempt + 1"),
		"lease_owner": worker,
		"lease_until": f.leaseUntil(),
		"started_at":  gorm.Expr("COALESCE(started_at, ?)", core.Now()),
	}).Error
	if err != nil {
		return core.Claimed{}, err
	}
	run, err := row.Core()
	if err != nil {
		return core.Claimed{}, err
	}
	run.Resumed = run.Attempt > 1
	// It is there when the run was started before and had to wait for a decision.
	inLog, err := j.inLog(run.UserMessageID)
	if err != nil {
		return core.Claimed{}, err
	}
	message, err := j.start(run, f, inLog)
	if err == nil {
		j.touch()
		err = j.close()
	}
	return core.Claimed{Run: run, Session: j.session.Core(), Message: message, Events: j.events}, err
}
