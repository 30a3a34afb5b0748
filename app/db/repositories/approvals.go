package repositories

import (
	"context"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/core/conversation"
	"bobbin/app/db/models"
)

// Approvals returns the approvals of a run, decided or not, in the order of the requests:
// those of the calls, or all if none is named.
func (r *Runs) Approvals(ctx context.Context, id core.RunID, calls ...string) ([]core.Approval, error) {
	db := byID(ctx, r.db, "run", id).Where("run_id = ?", id)
	if len(calls) > 0 {
		db = db.Where("call_id IN ?", calls)
	}
	list, err := approvals(db)
	return list, wrapError(err, "run", id)
}

func approvals(db *gorm.DB) ([]core.Approval, error) {
	return findRows[core.Approval](db.Order("requested_at, id"))
}

// Allowed returns the definitions of the tools that need no further approval in the session:
// those with mode "first" of which a call was approved.
func (r *Runs) Allowed(ctx context.Context, session core.SessionID, tools []string) (map[string]bool, error) {
	definitions, err := scan[[]string](byID(ctx, r.db, "session", session).Model(&core.Approval{}).Distinct("definition").
		Where("session_id = ? AND tool IN ? AND mode = 'first' AND status = 'approved'", session, tools))
	allowed := map[string]bool{}
	for _, definition := range definitions {
		allowed[definition] = true
	}
	return allowed, wrapError(err, "session", session)
}

// Decide decides an approval (conversation.Decide). A run that is queued again starts before all
// others of its session.
func (r *Runs) Decide(ctx context.Context, tenant core.Tenant, run core.RunID, id core.ApprovalID, d core.ApprovalDecision) (core.Decided, error) {
	found, err := r.Get(ctx, tenant, run)
	if err != nil {
		return core.Decided{}, err
	}
	var out core.Decided
	_, err = changeOnce(ctx, r.db, found.SessionID, unlessBusy(func(stx *sessionTx) error {
		s, err := stx.loadState(run)
		if err == nil {
			out, err = stx.saveDecided(conversation.Decide(s, id, d))
		}
		return err
	}))
	if err == nil && out.Run.ID == "" { // an earlier execution of the request has decided it
		out.Run = found
		out.Approval, err = takeRow[core.Approval](r.db.WithContext(ctx).Where("run_id = ? AND id = ?", run, id), "approval", id)
	}
	return out, wrapError(err, "approval", id)
}

// AnswerCalls gives calls of a client's tools their results, all of them or none
// (conversation.AnswerCalls).
func (r *Runs) AnswerCalls(ctx context.Context, tenant core.Tenant, in core.AnswerCalls) (core.Decided, error) {
	var out core.Decided
	err := commitOnce(ctx, func(note resultRecorder) error {
		_, err := changeLog(ctx, r.db, in.SessionID, func(stx *sessionTx) error {
			if err := note(stx.tx, ""); err != nil {
				return err
			}
			s := conversation.State{Session: stx.session.Core()}
			err := stx.loadCalls(&s, in.Results, "")
			if err != nil {
				return err
			}
			change, err := conversation.AnswerCalls(s, in)
			if err == nil && change.Run.Options != s.Run.Options {
				addBytes(stx, -1, []core.Run{s.Run})
				addBytes(stx, 1, []core.Run{change.Run})
				err = stx.tx.Model(&models.Run{}).Where("id = ?", s.Run.ID).UpdateColumns(map[string]any{"options": models.EncodeJSON(change.Run.Options)}).Error
			}
			out, err = stx.saveDecided(change, err)
			return err
		}, visibleTo(tenant))
		return err
	}, func(string) (err error) {
		out, err = r.AnswerCalls(core.WithoutKeyedWork(ctx), tenant, in)
		return err
	})
	return out, wrapError(err, "session", in.SessionID)
}

// loadCalls loads the state for results of calls: the approvals of the runs that have the calls,
// with those of the waiting run, if there is one, and the newest of these runs.
func (stx *sessionTx) loadCalls(s *conversation.State, results []core.CallResult, waiting models.Ref) (err error) {
	calls := idsOf(results, func(r core.CallResult) string { return r.ToolCallID })
	of := stx.tx.Model(&core.Approval{}).Select("run_id").Where("session_id = ? AND (run_id = ? OR kind = 'client_tool' AND call_id IN ?)", stx.session.ID, waiting, calls)
	s.Approvals, err = approvals(stx.tx.Where("session_id = ? AND run_id IN (?)", stx.session.ID, of))
	if n := len(s.Approvals); err == nil && n > 0 {
		s.Run, err = findRun(stx.tx, stx.tx.Where("id = ?", s.Approvals[n-1].RunID))
	}
	return err
}

// ExpireApprovals closes the expired approvals of at most limit runs, which then continue.
// It returns the events of their sessions, to be published.
func (r *Runs) ExpireApprovals(ctx context.Context, limit int) ([]core.Event, error) {
	var due []struct {
		RunID     core.RunID
		SessionID core.SessionID
	}
	err := r.db.WithContext(ctx).Model(&core.Approval{}).Select("run_id, session_id").
		Where("status = 'open' AND expires_at <= " + clockBoundSQL(r.db, 0)).
		Group("run_id, session_id").Order("MIN(expires_at), run_id").Limit(limit).Scan(&due).Error
	if err != nil {
		return nil, wrapError(err, "approvals", "due")
	}
	var events []core.Event
	for _, d := range due {
		expired, err := changeLog(ctx, r.db, d.SessionID, func(stx *sessionTx) error {
			s, err := stx.loadState(d.RunID)
			if err == nil {
				err = stx.storeChange(conversation.Expire(s))
			}
			return err
		})
		if isNotFound(err) { // purged meanwhile
			continue
		}
		if err != nil {
			return events, wrapError(err, "run", d.RunID)
		}
		events = append(events, expired...)
	}
	return events, nil
}
