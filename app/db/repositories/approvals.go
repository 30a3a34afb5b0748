package repositories

import (
	"context"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Approvals returns the questions of a run, decided or not, in the order in which
// they were asked.
func (r *Runs) Approvals(ctx context.Context, id core.RunID) ([]core.Approval, error) {
	if err := known("run", id); err != nil {
		return nil, err
	}
	list, err := approvals(r.db.WithContext(ctx).Where("run_id = ?", id))
	return list, failure(err, "run", id)
}

// approvals reads the questions that db is narrowed to.
func approvals(db *gorm.DB) ([]core.Approval, error) {
	var rows []models.Approval
	if err := db.Order("requested_at, id").Find(&rows).Error; err != nil {
		return nil, err
	}
	return values(rows, sure(models.Approval.Core))
}

// Allowed returns which of the tools need no further approval in the session: those
// asked for once of which one call was approved.
func (r *Runs) Allowed(ctx context.Context, session core.SessionID, tools []string) (map[string]bool, error) {
	if err := known("session", session); err != nil {
		return nil, err
	}
	var names []string
	err := r.db.WithContext(ctx).Model(&models.Approval{}).Distinct("tool").
		Where("session_id = ? AND tool IN ? AND mode = 'first' AND status = 'approved'", session, tools).Scan(&names).Error
	allowed := map[string]bool{}
	for _, name := range names {
		allowed[name] = true
	}
	return allowed, failure(err, "session", session)
}

// Decide answers a question. The first answer counts: the same one again changes
// nothing, and another one is ErrConflict, which says who decided what. With the
// last of its questions the run is queued again, before all others of its session.
func (r *Runs) Decide(ctx context.Context, scope core.Scope, run core.RunID, id core.ApprovalID, d core.ApprovalDecision) (core.Decided, error) {
	seen, err := r.Get(ctx, scope, run)
	if err != nil {
		return core.Decided{}, err
	}
	if err := known("approval", id); err != nil {
		return core.Decided{}, err
	}
	var out core.Decided
	err = inTx(ctx, r.db, func(tx *gorm.DB) error {
		j, err := lockSession(tx, seen.SessionID)
		if err != nil {
			return err
		}
		if out.Approval, err = j.decide(run, id, d); err != nil {
			return err
		}
		if out.Run, err = j.run(run); err != nil {
			return err
		}
		out.Events = j.events
		return j.close()
	})
	if err != nil {
		return core.Decided{}, failure(err, "approval", id)
	}
	return out, nil
}

// decide answers a question if it is open.
func (j *journal) decide(run core.RunID, id core.ApprovalID, d core.ApprovalDecision) (core.Approval, error) {
	var row models.Approval
	if err := j.tx.Where("id = ? AND run_id = ?", id, run).Take(&row).Error; err != nil {
		return core.Approval{}, err
	}
	a := row.Core()
	switch a.Status {
	case core.ApprovalOpen:
	case d.Status():
		return a, nil
	default:
		return a, decidedError(a)
	}
	a.Status, a.Comment, a.DecidedBy = d.Status(), d.Comment, d.By
	a, err := j.settle(a)
	if err == nil {
		err = j.suspend(run, false)
	}
	return a, err
}

// decidedError says who decided what.
func decidedError(a core.Approval) error {
	words := string(a.Status)
	if a.DecidedBy != "" {
		words += " by " + a.DecidedBy
	}
	if a.DecidedAt != nil {
		words += " at " + a.DecidedAt.Format("2006-01-02T15:04:05Z")
	}
	if a.Comment != "" {
		words += ": " + a.Comment
	}
	return core.Errorf(core.ErrConflict, "approval %s is not open any more, it was %s", a.ID, words)
}

// settle stores what an open question has become, and tells of it.
func (j *journal) settle(a core.Approval) (core.Approval, error) {
	now := core.Now()
	a.DecidedAt = &now
	changes, err := checked(map[string]any{
		"status": string(a.Status), "comment": a.Comment, "decided_by": a.DecidedBy, "decided_at": a.DecidedAt,
	})
	if err == nil {
		err = j.tx.Model(&models.Approval{}).Where("id = ?", a.ID).UpdateColumns(changes).Error
	}
	j.emit(core.NewEvent(a.SessionID, a.RunID, core.EventApprovalDecided, core.ApprovalData{Approval: a}))
	return a, err
}

// settleOpen gives the open questions of a run another status, those that are due
// alone or all of them.
func (j *journal) settleOpen(run core.RunID, due bool, status core.ApprovalStatus, comment string) error {
	db := j.tx.Where("run_id = ? AND status = 'open'", run)
	if due {
		db = db.Where("expires_at <= " + clockSQL(j.tx, 0))
	}
	open, err := approvals(db)
	if err != nil {
		return err
	}
	for _, a := range open {
		a.Status, a.Comment = status, comment
		if _, err := j.settle(a); err != nil {
			return err
		}
	}
	return nil
}

// suspend queues a waiting run that has no open question any more. With cancel it
// will end when it is claimed.
func (j *journal) suspend(run core.RunID, cancel bool) error {
	changes := map[string]any{"status": string(core.RunQueued)}
	if cancel {
		changes["cancel_requested"] = true
	}
	return j.tx.Model(&models.Run{}).
		Where("id = ? AND status = 'waiting' AND NOT EXISTS (SELECT 1 FROM approvals a WHERE a.run_id = runs.id AND a.status = 'open')", run).
		UpdateColumns(changes).Error
}

// closeOpen ends the waiting of a run that is to be canceled.
func (j *journal) closeOpen(run core.RunID, why string) error {
	if err := j.settleOpen(run, false, core.ApprovalClosed, why); err != nil {
		return err
	}
	return j.suspend(run, true)
}

// run returns a run as it is stored.
func (j *journal) run(id core.RunID) (core.Run, error) {
	var row models.Run
	if err := j.tx.Where("id = ?", id).Take(&row).Error; err != nil {
		return core.Run{}, err
	}
	return row.Core()
}

// wait stores what the run asks for, and tells of it.
func (j *journal) wait(run core.Run, w core.RunWait) error {
	asked, err := approvals(j.tx.Where("run_id = ?", run.ID))
	if err != nil {
		return err
	}
	f, err := j.facts("", "")
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, a := range asked {
		known[a.ToolCallID] = true
	}
	var rows []models.Approval
	for _, a := range w.Approvals {
		if known[a.ToolCallID] {
			continue
		}
		a.ID, a.RunID, a.SessionID = core.NewID[core.ApprovalID](), run.ID, run.SessionID
		a.Status, a.RequestedAt = core.ApprovalOpen, core.Now()
		if w.Expiry > 0 {
			at := f.Now.Add(w.Expiry)
			a.ExpiresAt = &at
		}
		rows = append(rows, models.ApprovalFrom(run.Owner, a))
		j.emit(core.NewEvent(run.SessionID, run.ID, core.EventApprovalRequested, core.ApprovalData{Approval: a}))
	}
	if err := j.report(run, core.EventRunWaiting); err != nil {
		return err
	}
	if err := insert(j.tx, &rows); err != nil {
		return err
	}
	return j.suspend(run.ID, false) // should all be decided, it goes on
}

// ExpireApprovals closes the questions that nobody answered in time, of at most
// limit runs; those go on. It returns what happened in their sessions, to be
// published.
func (r *Runs) ExpireApprovals(ctx context.Context, limit int) ([]core.Event, error) {
	var due []struct {
		RunID     core.RunID
		SessionID core.SessionID
	}
	err := r.db.WithContext(ctx).Model(&models.Approval{}).Select("run_id, session_id").
		Where("status = 'open' AND expires_at <= " + clockSQL(r.db, 0)).
		Group("run_id, session_id").Order("MIN(expires_at), run_id").Limit(limit).Scan(&due).Error
	if err != nil {
		return nil, failure(err, "approvals", "due")
	}
	var events []core.Event
	for _, d := range due {
		var j *journal
		err := inTx(ctx, r.db, func(tx *gorm.DB) (err error) {
			if j, err = lockSession(tx, d.SessionID); err != nil {
				return err
			}
			if err := j.settleOpen(d.RunID, true, core.ApprovalExpired, core.ApprovalTooLate); err != nil {
				return err
			}
			if err := j.suspend(d.RunID, false); err != nil {
				return err
			}
			return j.close()
		})
		if isNotFound(err) { // purged meanwhile
			continue
		}
		if err != nil {
			return events, failure(err, "run", d.RunID)
		}
		events = append(events, j.events...)
	}
	return events, nil
}
