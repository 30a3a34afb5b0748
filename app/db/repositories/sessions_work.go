package repositories

import (
	"context"
	"time"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// SummaryWork returns what goes on with the session's summaries.
func (r *Sessions) SummaryWork(ctx context.Context, scope core.Scope, id core.SessionID) (core.SummaryWork, error) {
	if err := known("session", id); err != nil {
		return core.SummaryWork{}, err
	}
	var row struct {
		PromptRevision, SummaryFailures int
		SummaryFailure                  string
		Busy, Open                      bool
		SummaryBreakerUntil             *time.Time
		ID                              models.Ref
		Version, TokenCount             int
		MessagesCovered                 int
		ThroughSeq                      int64
	}
	now := clockSQL(r.db, 0)
	err := r.db.WithContext(ctx).Table("(?) AS s", r.db.Model(&models.Session{}).Scopes(visible(scope)).Where("id = ?", id)).
		Joins("LEFT JOIN session_summaries p ON p.session_id = s.id AND p.kind = 'rolling' AND p.state = 'prepared'").
		Select("s.prompt_revision, s.summary_failures, s.summary_failure, s.summary_breaker_until, " +
			"COALESCE(s.summary_lease_until > " + now + ", false) AS busy, COALESCE(s.summary_breaker_until > " + now + ", false) AS open, " +
			"p.id, COALESCE(p.version, 0) AS version, COALESCE(p.through_seq, 0) AS through_seq, " +
			"COALESCE(p.token_count, 0) AS token_count, COALESCE(p.messages_covered, 0) AS messages_covered").
		Take(&row).Error
	if err != nil {
		return core.SummaryWork{}, failure(err, "session", id)
	}
	w := core.SummaryWork{
		Revision: row.PromptRevision, Busy: row.Busy,
		Prepared: core.PreparedSummary{ID: core.SummaryID(row.ID), Version: row.Version, ThroughSeq: row.ThroughSeq, Tokens: row.TokenCount, Messages: row.MessagesCovered},
		Breaker:  core.Breaker{Failures: row.SummaryFailures, Reason: row.SummaryFailure},
	}
	if row.Open && row.SummaryBreakerUntil != nil {
		until := row.SummaryBreakerUntil.UTC()
		w.Breaker.Until = &until
	}
	return w, nil
}

// LeaseSummary lets one at a time make a summary of the session, in all processes:
// it says whether the holder may, for so long by the database's clock. A holder
// that has it already gets it for so long from now on.
func (r *Sessions) LeaseSummary(ctx context.Context, scope core.Scope, id core.SessionID, holder string, d time.Duration) (core.Grant, error) {
	if err := known("session", id); err != nil {
		return core.GrantRefused, err
	}
	take := func(when string, args ...any) (bool, error) {
		res := r.db.WithContext(ctx).Model(&models.Session{}).Scopes(visible(scope)).Where("id = ?", id).Where(when, args...).
			UpdateColumns(map[string]any{"summary_lease_owner": holder, "summary_lease_until": gorm.Expr(clockSQL(r.db, d))})
		return res.RowsAffected > 0, failure(res.Error, "session", id)
	}
	if ok, err := take("summary_lease_until IS NULL OR summary_lease_owner = ?", holder); ok || err != nil {
		return grant(ok, core.GrantGiven), err
	}
	if ok, err := take("summary_lease_until <= " + clockSQL(r.db, 0)); ok || err != nil {
		return grant(ok, core.GrantTakenOver), err
	}
	return core.GrantRefused, mustSee(r.db.WithContext(ctx), scope, id)
}

// grant returns g if it was given.
func grant(ok bool, g core.Grant) core.Grant {
	if !ok {
		return core.GrantRefused
	}
	return g
}

// FreeSummary ends the holder's lease. One that is another's by now stays.
func (r *Sessions) FreeSummary(ctx context.Context, id core.SessionID, holder string) error {
	err := r.db.WithContext(ctx).Model(&models.Session{}).Where("id = ? AND summary_lease_owner = ?", id, holder).
		UpdateColumns(free()).Error
	return failure(err, "session", id)
}

// FreeSummaries ends the leases of all holders whose names begin so: those of a
// process that has died and is started again.
func (r *Sessions) FreeSummaries(ctx context.Context, prefix string) error {
	err := r.db.WithContext(ctx).Model(&models.Session{}).
		Where("summary_lease_until IS NOT NULL AND substr(summary_lease_owner, 1, ?) = ?", len(prefix), prefix).
		UpdateColumns(free()).Error
	return failure(err, "summaries of", prefix)
}

// free is a session whose summary nobody makes.
func free() map[string]any {
	return map[string]any{"summary_lease_owner": "", "summary_lease_until": nil}
}

// SummaryFailed stores that a summary was tried and not made: its events, its model
// calls, and that the model failed, if it did.
func (r *Sessions) SummaryFailed(ctx context.Context, scope core.Scope, f core.SummaryFailure) ([]core.Event, error) {
	var j *journal
	err := inTx(ctx, r.db, func(tx *gorm.DB) (err error) {
		if j, err = lockSession(tx, f.SessionID, visible(scope)); err != nil {
			return err
		}
		if f.Reason != "" {
			j.blame(f.Reason)
		}
		j.emit(f.Events...)
		if err := j.book(f.ModelCalls, ""); err != nil {
			return err
		}
		return j.close()
	})
	if err != nil {
		return nil, failure(err, "session", f.SessionID)
	}
	return j.events, nil
}

// judge counts a failure of the summary model, or forgets all of them when it has
// made a summary.
func (j *journal) judge(change core.ContextChange) {
	switch {
	case change.Failure != "":
		j.blame(change.Failure)
	case change.Summary != nil && change.Summary.Model != "" && j.session.SummaryFailures > 0:
		j.changes["summary_failures"], j.changes["summary_failure"], j.changes["summary_breaker_until"] = 0, "", nil
	}
}

// blame counts a failure of the summary model. From the third in a row on each one
// opens the breaker; there is one try before each.
func (j *journal) blame(reason string) {
	j.session.SummaryFailures++
	j.changes["summary_failures"], j.changes["summary_failure"] = j.session.SummaryFailures, reason
	if j.session.SummaryFailures >= core.BreakerFailures {
		j.changes["summary_breaker_until"] = gorm.Expr(clockSQL(j.tx, core.BreakerTime))
	}
}
