package repositories

import (
	"cmp"
	"context"
	"errors"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

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
	found, err := scan[bool](r.db.WithContext(ctx).Raw("SELECT EXISTS (SELECT 1 FROM runs WHERE session_id = ? AND status = 'queued')", session))
	if err == nil && !found {
		err = conversation.NothingToStart(session)
	}
	if err != nil {
		return core.Claimed{}, wrapError(err, "session", session)
	}
	var out core.Claimed
	out.Events, err = changeLog(ctx, r.db, session, func(stx *sessionTx) error {
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
		row := models.RunFrom(run)
		row.Input = run.Input.Emptied()
		if inLog == nil {
			changes["input"] = models.EncodeJSON(row.Input)
			addBytes(stx, -1, []core.RunInput{run.Input}) // the log counts it
		}
		message, err := stx.enterLog(run, f, inLog)
		if err == nil {
			err = stx.tx.Model(&models.Run{}).Where("id = ?", run.ID).UpdateColumns(changes).Error
		}
		stx.setUpdatedAt()
		last := message.ID
		if inLog != nil { // others may follow it
			last = ""
		}
		out = core.Claimed{Run: run, Session: stx.sessionWithRun(run), Message: message, Known: stx.knownAfter(row, last)}
		return err
	})
	return out, wrapError(err, "session", session)
}

// RequestCancel cancels a run (conversation.Cancel), and returns it as it is then. It may be
// repeated.
func (r *Runs) RequestCancel(ctx context.Context, tenant core.Tenant, id core.RunID) (core.Run, []core.Event, error) {
	found, err := r.Get(ctx, tenant, id)
	if err != nil {
		return core.Run{}, nil, err
	}
	out := core.Decided{Run: found} // also if an earlier execution of the request has canceled it
	if _, keyed := core.KeyedWorkFrom(ctx); found.Status.Ended() && !keyed {
		return found, nil, nil
	}
	_, err = changeOnce(ctx, r.db, found.SessionID, unlessBusy(func(stx *sessionTx) error {
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
	}))
	return out.Run, out.Events, wrapError(err, "run", id)
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

func (stx *sessionTx) storeChange(c conversation.Change) error {
	for i := range c.Changed {
		a := &c.Changed[i]
		a.Kind, a.Owner = cmp.Or(a.Kind, core.KindApproval), stx.session.Owner
	}
	if len(c.Changed) > 0 {
		if err := stx.tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&c.Changed).Error; err != nil {
			return err
		}
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

func (stx *sessionTx) saveDecided(c conversation.Change, err error) (core.Decided, error) {
	if err == nil {
		err = stx.storeChange(c)
	}
	return core.Decided{Approval: c.Approval, Run: c.Run, Events: stx.events}, err
}
