package repositories

import (
	"context"
	"errors"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/core/conversation"
	"bobbin/app/db/models"
)

// Claim starts the session's oldest queued run if no other run of the session is active
// (conversation.Claim); its message enters the log. If several workers claim concurrently, one
// gets the run.
func (r *Runs) Claim(ctx context.Context, session core.SessionID, worker string) (core.Claimed, error) {
	// Without a lock: each turn ends with this check, and usually nothing is queued. It misses nothing: Accept starts a
	// run in its own transaction if none is active, or wakes a process with a free slot afterwards.
	var found bool
	err := r.db.WithContext(ctx).Raw(`SELECT EXISTS (SELECT 1 FROM runs WHERE session_id = ? AND status = 'queued') OR
		EXISTS (SELECT 1 FROM runs WHERE session_id = ? AND status IN ('running', 'waiting') AND status = 'running' AND lease_owner = ?)`,
		session, session, worker).Scan(&found).Error
	if err == nil && !found {
		err = conversation.NothingToStart(session)
	}
	if err != nil {
		return core.Claimed{}, wrapError(err, "session", session)
	}
	var out core.Claimed
	err = changeLog(ctx, r.db, session, func(stx *sessionTx) error {
		f, err := stx.loadFacts()
		if err != nil {
			return err
		}
		run, err := findRun(stx.tx, stx.tx.Where("id = ?", f.RunID))
		if err != nil && !errors.Is(err, gorm.ErrRecordNotFound) {
			return err
		}
		c, err := conversation.Claim(conversation.State{Session: core.Session{ID: session}, Run: run, Now: f.Now.Time}, worker)
		if err != nil {
			return err
		}
		run = c.Run
		if len(c.Events) == 0 {
			out = core.Claimed{Run: run, Repeated: true}
			return nil
		}
		run.Resumed = run.Attempt > 1
		stx.emitEvents(c.Events...)
		// The message is in the log if the run started before and waited for a decision.
		inLog, err := stx.findInLog(run.UserMessageID)
		if err != nil {
			return err
		}
		changes := map[string]any{
			"status": string(run.Status), "attempt": run.Attempt, "lease_owner": run.LeaseOwner, "lease_until": run.LeaseUntil, "started_at": run.StartedAt,
		}
		if inLog == nil {
			changes["input"] = models.EncodeJSON(run.Input.Emptied())
		}
		message, err := stx.enterLog(run, f, inLog)
		if err == nil {
			err = stx.tx.Model(&models.Run{}).Where("id = ?", run.ID).UpdateColumns(changes).Error
		}
		stx.setUpdatedAt()
		out = core.Claimed{Run: run, Session: stx.sessionWithRun(run), Message: message, Events: stx.events}
		return err
	})
	if err != nil {
		return core.Claimed{}, wrapError(err, "session", session)
	}
	return out, nil
}
