package repositories

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Approvals returns the approvals of a run, decided or not, in the order of the requests:
// those of the calls, or all if none is named.
func (r *Runs) Approvals(ctx context.Context, id core.RunID, calls ...string) ([]core.Approval, error) {
	if err := requireID("run", id); err != nil {
		return nil, err
	}
	db := r.db.WithContext(ctx).Where("run_id = ?", id)
	if len(calls) > 0 {
		db = db.Where("call_id IN ?", calls)
	}
	list, err := approvals(db)
	return list, wrapError(err, "run", id)
}

// approvals reads the approvals that db selects.
func approvals(db *gorm.DB) ([]core.Approval, error) {
	var rows []models.Approval
	if err := db.Order("requested_at, id").Find(&rows).Error; err != nil {
		return nil, err
	}
	return mapRows(rows, infallible(models.Approval.Core))
}

// Allowed returns the definitions of the tools that need no further approval in the session:
// those with mode "first" of which a call was approved.
func (r *Runs) Allowed(ctx context.Context, session core.SessionID, tools []string) (map[string]bool, error) {
	if err := requireID("session", session); err != nil {
		return nil, err
	}
	var definitions []string
	err := r.db.WithContext(ctx).Model(&models.Approval{}).Distinct("definition").
		Where("session_id = ? AND tool IN ? AND mode = 'first' AND status = 'approved'", session, tools).Scan(&definitions).Error
	allowed := map[string]bool{}
	for _, definition := range definitions {
		allowed[definition] = true
	}
	return allowed, wrapError(err, "session", session)
}

// Decide decides an approval. The first decision counts: repeating it changes nothing, and
// a different one is ErrConflict, which says who decided what. After the last open approval
// the run is queued again, before all others of its session.
func (r *Runs) Decide(ctx context.Context, tenant core.Tenant, run core.RunID, id core.ApprovalID, d core.ApprovalDecision) (core.Decided, error) {
	found, err := r.Get(ctx, tenant, run)
	if err != nil {
		return core.Decided{}, err
	}
	if err := requireID("approval", id); err != nil {
		return core.Decided{}, err
	}
	var out core.Decided
	err = changeLog(ctx, r.db, found.SessionID, func(stx *sessionTx) (err error) {
		if out.Approval, err = stx.decideApproval(run, id, d); err != nil {
			return err
		}
		if out.Run, err = stx.loadRun(run); err != nil {
			return err
		}
		out.Events = stx.events
		return stx.saveChanges()
	})
	if err != nil {
		return core.Decided{}, wrapError(err, "approval", id)
	}
	return out, nil
}

// decideApproval decides an approval if it is open.
func (stx *sessionTx) decideApproval(run core.RunID, id core.ApprovalID, d core.ApprovalDecision) (core.Approval, error) {
	var row models.Approval
	if err := stx.tx.Where("id = ? AND run_id = ?", id, run).Take(&row).Error; err != nil {
		return core.Approval{}, err
	}
	a, err := stx.settleDecision(row.Core(), d)
	if err == nil {
		err = stx.requeueWaiting(run, false)
	}
	return a, err
}

// settleDecision decides an open approval; a decision that repeats the one that was made
// changes nothing.
func (stx *sessionTx) settleDecision(a core.Approval, d core.ApprovalDecision) (core.Approval, error) {
	switch {
	case a.Status == core.ApprovalOpen:
	case a.Repeats(d):
		return a, nil
	default:
		return a, decidedError(a)
	}
	a, err := a.Decide(d)
	if err != nil {
		return a, err
	}
	return stx.settleApproval(a)
}

// AnswerCalls gives calls of a client's tools their results, all of them or none. After the
// last open approval the run is queued again. A result that repeats the first one changes
// nothing, and another one is ErrConflict with core.CodeCallDecided.
func (r *Runs) AnswerCalls(ctx context.Context, tenant core.Tenant, in core.AnswerCalls) (core.Decided, error) {
	var out core.Decided
	_, repeated, err := commitOnce(ctx, func(note resultRecorder) error {
		return changeLog(ctx, r.db, in.SessionID, func(stx *sessionTx) error {
			if err := note(stx.tx, ""); err != nil {
				return err
			}
			run, err := stx.answerCalls(in)
			if err != nil {
				return err
			}
			if err := stx.requeueWaiting(run, false); err != nil {
				return err
			}
			if out.Run, err = stx.loadRun(run); err != nil {
				return err
			}
			out.Events = stx.events
			return stx.saveChanges()
		}, visibleTo(tenant))
	})
	if repeated {
		return r.AnswerCalls(core.WithoutKeyedWork(ctx), tenant, in)
	}
	if err != nil {
		return core.Decided{}, wrapError(err, "session", in.SessionID)
	}
	return out, nil
}

// answerCalls gives the calls their results, and returns their run.
func (stx *sessionTx) answerCalls(in core.AnswerCalls) (core.RunID, error) {
	calls := idsOf(in.Results, func(r core.CallResult) string { return r.ToolCallID })
	asked, err := approvals(stx.tx.Where("session_id = ? AND kind = 'client_tool' AND call_id IN ?", stx.session.ID, calls))
	if err != nil {
		return "", err
	}
	slices.Reverse(asked) // two runs may have calls of one id: the newest counts
	var run core.RunID
	for _, result := range in.Results {
		i := slices.IndexFunc(asked, func(a core.Approval) bool { return a.ToolCallID == result.ToolCallID })
		switch {
		case i < 0:
			return "", &core.Error{Kind: core.ErrNotFound, Code: core.CodeNoToolCall,
				Message: fmt.Sprintf("the session has no call %q of a client's tool", core.Clip(result.ToolCallID, maxShownCall))}
		case run != "" && asked[i].RunID != run:
			return "", core.Errorf(core.ErrInvalid, "the results are of calls of several runs: send those of one run")
		}
		run = asked[i].RunID
		_, err := stx.settleDecision(asked[i], core.ApprovalDecision{Result: &result.Result, IsError: result.IsError, By: in.By})
		if e, ok := errors.AsType[*core.Error](err); ok && errors.Is(err, core.ErrConflict) {
			e.Code = core.CodeCallDecided
		}
		if err != nil {
			return "", err
		}
	}
	return run, nil
}

// maxShownCall bounds the id of a call in an error.
const maxShownCall = 64

// decidedError says who decided what.
func decidedError(a core.Approval) *core.Error {
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
	return core.Errorf(core.ErrConflict, "approval %s is no longer open: it was %s", a.ID, words)
}

// settleApproval stores the decision of an open approval and emits it.
func (stx *sessionTx) settleApproval(a core.Approval) (core.Approval, error) {
	now := core.Now()
	a.DecidedAt = &now
	changes, err := storableChanges(map[string]any{
		"status": string(a.Status), "comment": a.Comment, "decided_by": a.DecidedBy, "decided_at": a.DecidedAt,
		"edited_arguments": a.Edited, "result": a.Result, "failed": a.Failed,
	})
	if err == nil {
		err = stx.tx.Model(&models.Approval{}).Where("id = ?", a.ID).UpdateColumns(changes).Error
	}
	stx.emitEvents(core.NewEvent(a.SessionID, a.RunID, core.EventApprovalDecided, core.ApprovalData{Approval: a}))
	return a, err
}

// settleOpenApprovals sets another status on the open approvals of a run: with due only on
// expired ones.
func (stx *sessionTx) settleOpenApprovals(run core.RunID, due bool, status core.ApprovalStatus, comment string) error {
	db := stx.tx.Where("run_id = ? AND status = 'open'", run)
	if due {
		db = db.Where("expires_at <= " + clockSQL(stx.tx, 0))
	}
	open, err := approvals(db)
	if err != nil {
		return err
	}
	for _, a := range open {
		a.Status, a.Comment = status, comment
		if _, err := stx.settleApproval(a); err != nil {
			return err
		}
	}
	return nil
}

// requeueWaiting queues a waiting run without open approvals. With cancel it ends when it
// is claimed.
func (stx *sessionTx) requeueWaiting(run core.RunID, cancel bool) error {
	changes := map[string]any{"status": string(core.RunQueued)}
	if cancel {
		changes["cancel_requested"] = true
	}
	return stx.tx.Model(&models.Run{}).
		Where("id = ? AND status = 'waiting' AND NOT EXISTS (SELECT 1 FROM approvals a WHERE a.run_id = runs.id AND a.status = 'open')", run).
		UpdateColumns(changes).Error
}

// closeApprovals ends the wait of a run that is to be canceled.
func (stx *sessionTx) closeApprovals(run core.RunID, why string) error {
	if err := stx.settleOpenApprovals(run, false, core.ApprovalClosed, why); err != nil {
		return err
	}
	return stx.requeueWaiting(run, true)
}

// loadRun returns a run as it is stored.
func (stx *sessionTx) loadRun(id core.RunID) (core.Run, error) {
	runs, err := findRuns(stx.tx, stx.tx.Where("id = ?", id), "id")
	if err == nil && len(runs) == 0 {
		err = gorm.ErrRecordNotFound
	}
	if err != nil {
		return core.Run{}, err
	}
	return runs[0], nil
}

// requestApprovals stores the approvals that the run requests, and emits them. A call is requested
// once, and again if its tool has changed; the question before ends then.
func (stx *sessionTx) requestApprovals(run core.Run, w core.RunWait) error {
	requested, err := approvals(stx.tx.Where("run_id = ?", run.ID))
	if err != nil {
		return err
	}
	f, err := stx.loadFacts()
	if err != nil {
		return err
	}
	var rows []models.Approval
	for _, a := range w.Approvals {
		if before, found := core.ApprovalOf(requested, nil, core.ToolCall{ID: a.ToolCallID}); found {
			if before.Definition == a.Definition {
				continue
			}
			before.Status, before.Comment = core.ApprovalClosed, core.ApprovalChanged
			if _, err := stx.settleApproval(before); err != nil {
				return err
			}
		}
		a.ID, a.RunID, a.SessionID = core.NewID[core.ApprovalID](), run.ID, run.SessionID
		a.Status, a.RequestedAt = core.ApprovalOpen, core.Now()
		if w.Expiry > 0 {
			at := f.Now.Add(w.Expiry)
			a.ExpiresAt = &at
		}
		rows = append(rows, models.ApprovalFrom(run.Owner, a))
		stx.emitEvents(core.NewEvent(run.SessionID, run.ID, core.EventApprovalRequested, core.ApprovalData{Approval: a}))
	}
	if err := stx.reportRun(run, core.EventRunWaiting); err != nil {
		return err
	}
	if err := insertRows(stx.tx, &rows); err != nil {
		return err
	}
	return stx.requeueWaiting(run.ID, false) // the run continues if all are already decided
}

// ExpireApprovals closes the expired approvals of at most limit runs, which then continue.
// It returns the events of their sessions, to be published.
func (r *Runs) ExpireApprovals(ctx context.Context, limit int) ([]core.Event, error) {
	var due []struct {
		RunID     core.RunID
		SessionID core.SessionID
	}
	err := r.db.WithContext(ctx).Model(&models.Approval{}).Select("run_id, session_id").
		Where("status = 'open' AND expires_at <= " + clockBoundSQL(r.db, 0)).
		Group("run_id, session_id").Order("MIN(expires_at), run_id").Limit(limit).Scan(&due).Error
	if err != nil {
		return nil, wrapError(err, "approvals", "due")
	}
	var events []core.Event
	for _, d := range due {
		var stx *sessionTx
		err := changeLog(ctx, r.db, d.SessionID, func(locked *sessionTx) error {
			stx = locked
			if err := stx.settleOpenApprovals(d.RunID, true, core.ApprovalExpired, core.ApprovalTooLate); err != nil {
				return err
			}
			if err := stx.requeueWaiting(d.RunID, false); err != nil {
				return err
			}
			return stx.saveChanges()
		})
		if isNotFound(err) { // purged meanwhile
			continue
		}
		if err != nil {
			return events, wrapError(err, "run", d.RunID)
		}
		events = append(events, stx.events...)
	}
	return events, nil
}
