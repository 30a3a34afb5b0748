package repositories

import (
	"context"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/models"
)

// Claim starts the session's oldest queued run and leases it to the worker, if no other run
// of the session is active; its message enters the log. ErrNotFound means that there is
// nothing to start. If several workers claim concurrently, one gets the run.
//
// A run that the worker has already claimed is returned again (core.Claimed.Repeated): the
// reply to that claim may have been lost.
func (r *Runs) Claim(ctx context.Context, session core.SessionID, worker string) (core.Claimed, error) {
	if err := r.checkClaimable(ctx, session, worker); err != nil {
		return core.Claimed{}, wrapError(err, "session", session)
	}
	var out core.Claimed
	err := changeLog(ctx, r.db, session, func(stx *sessionTx) error {
		stx.later = db.DeferWrites(stx.tx)
		f, err := stx.loadFacts()
		if err != nil {
			return err
		}
		switch {
		case f.Active > 0:
			out, err = stx.findClaimed(worker)
		case f.NextID == "":
			err = nothingToStartError(session)
		default:
			out, err = stx.claimRun(f, worker)
		}
		return err
	})
	if err != nil {
		return core.Claimed{}, wrapError(err, "session", session)
	}
	return out, nil
}

// checkClaimable returns ErrNotFound if the session has no queued run and none of the
// worker, without a lock: each turn ends with this check, and usually nothing is queued. It
// misses nothing: Accept starts a run in its own transaction if none is active, or wakes a
// process with a free slot afterwards.
func (r *Runs) checkClaimable(ctx context.Context, session core.SessionID, worker string) error {
	var found bool
	err := r.db.WithContext(ctx).Raw(`SELECT EXISTS (SELECT 1 FROM runs WHERE session_id = ? AND status = 'queued') OR
		EXISTS (SELECT 1 FROM runs WHERE session_id = ? AND status IN ('running', 'waiting') AND status = 'running' AND lease_owner = ?)`,
		session, session, worker).Scan(&found).Error
	if err == nil && !found {
		err = nothingToStartError(session)
	}
	return err
}

func nothingToStartError(session core.SessionID) error {
	return core.Errorf(core.ErrNotFound, "session %s has no run to start", session)
}

// findClaimed returns the session's running run if it is the worker's.
func (stx *sessionTx) findClaimed(worker string) (core.Claimed, error) {
	which := stx.tx.Where("session_id = ? AND status IN ('running', 'waiting') AND status = 'running' AND lease_owner = ?", stx.session.ID, worker)
	runs, err := findRuns(stx.tx, which, "queue_seq")
	if err == nil && len(runs) == 0 {
		err = nothingToStartError(core.SessionID(stx.session.ID))
	}
	if err != nil {
		return core.Claimed{}, err
	}
	return core.Claimed{Run: runs[0], Repeated: true}, nil
}

// emptyInput removes the input of a run whose message is now in the log.
func (stx *sessionTx) emptyInput(run core.Run) error {
	return stx.tx.Model(&models.Run{}).Where("id = ?", run.ID).UpdateColumn("input", models.InputFrom(run.Input.Emptied())).Error
}

// claimRun starts the oldest queued run.
func (stx *sessionTx) claimRun(f sessionFacts, worker string) (core.Claimed, error) {
	var row models.Run
	err := stx.tx.Model(&row).Clauses(returningAll(stx.tx, &models.Run{})).Where("id = ?", f.NextID).UpdateColumns(map[string]any{
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
	// The message is in the log if the run started before and waited for a decision.
	inLog, err := stx.findInLog(run.UserMessageID)
	if err != nil {
		return core.Claimed{}, err
	}
	message, err := stx.startRun(run, f, inLog)
	if err == nil && inLog == nil {
		err = stx.emptyInput(run)
	}
	if err == nil {
		stx.setUpdatedAt()
		err = stx.saveChanges()
	}
	if !run.Input.Regenerate {
		run.SetInput(message)
	}
	return core.Claimed{Run: run, Session: stx.sessionWithRun(run), Message: message, Events: stx.events}, err
}
