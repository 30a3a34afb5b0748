package repositories

import (
	"context"
	"math"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// SummaryWork returns the state of the session's background summaries.
func (r *Sessions) SummaryWork(ctx context.Context, tenant core.Tenant, id core.SessionID) (core.SummaryWork, error) {
	var row struct {
		models.Session `gorm:"embedded"`

		Prepared         core.Summary `gorm:"embedded;embeddedPrefix:p_"`
		IsLeased, IsOpen bool
	}
	now := clockSQL(r.db, 0)
	err := byID(ctx, r.db, "session", id).Table("(?) AS s", r.db.Model(&models.Session{}).Where(visibleTo(tenant)).Where("id = ?", id)).
		Joins("LEFT JOIN session_summaries p ON p.session_id = s.id AND p.kind = 'rolling' AND p.state = 'prepared'").
		Select("s.prompt_revision, s.summary_failures, s.summary_failure, s.summary_breaker_until, s.summary_lease_since, " +
			"COALESCE(s.summary_lease_until > " + now + ", false) AS is_leased, COALESCE(s.summary_breaker_until > " + now + ", false) AS is_open, " +
			"p.id AS p_id, p.state AS p_state, p.version AS p_version, p.through_id AS p_through_id, p.through_seq AS p_through_seq, p.made_for AS p_made_for, " +
			"p.tokens_covered AS p_tokens_covered, p.token_count AS p_token_count, p.messages_covered AS p_messages_covered").
		Take(&row).Error
	if err != nil {
		return core.SummaryWork{}, wrapError(err, "session", id)
	}
	w := core.SummaryWork{
		Revision: row.PromptRevision, Busy: row.IsLeased,
		Breaker: core.Breaker{Failures: row.SummaryFailures, Reason: row.SummaryFailure},
	}
	if row.IsLeased {
		w.Since = row.SummaryLeaseSince
	}
	if row.Prepared.Version > 0 {
		w.Prepared = row.Prepared.AsVersion()
	}
	if row.IsOpen {
		w.Breaker.Until = row.SummaryBreakerUntil
	}
	return w, nil
}

// LeaseSummary lets one holder at a time summarize the session, across all processes. It
// returns whether the holder has the lease, for d by the database's clock. A holder that
// already has it extends it.
func (r *Sessions) LeaseSummary(ctx context.Context, tenant core.Tenant, id core.SessionID, holder string, d time.Duration) (core.LeaseResult, error) {
	since := gorm.Expr("CASE WHEN summary_lease_owner = ? THEN summary_lease_since ELSE "+clockSQL(r.db, 0)+" END", holder)
	for grant, when := range map[core.LeaseResult]clause.Expr{
		core.GrantGiven:     gorm.Expr("(summary_lease_until IS NULL OR summary_lease_owner = ?)", holder),
		core.GrantTakenOver: gorm.Expr("summary_lease_owner <> ? AND summary_lease_until <= "+clockSQL(r.db, 0), holder),
	} {
		res := byID(ctx, r.db, "session", id).Model(&models.Session{}).Where(visibleTo(tenant)).Where("id = ?", id).Where(when).
			UpdateColumns(map[string]any{"summary_lease_owner": holder, "summary_lease_until": gorm.Expr(clockSQL(r.db, d)), "summary_lease_since": since})
		if res.RowsAffected > 0 || res.Error != nil {
			return grant, wrapError(res.Error, "session", id)
		}
	}
	return core.GrantRefused, requireVisible(r.db.WithContext(ctx), tenant, id)
}

// FreeSummary ends the holder's lease. A lease that another holder has taken over stays.
func (r *Sessions) FreeSummary(ctx context.Context, id core.SessionID, holder string) error {
	err := r.db.WithContext(ctx).Model(&models.Session{}).Where("id = ? AND summary_lease_owner = ?", id, holder).
		UpdateColumns(map[string]any{"summary_lease_owner": "", "summary_lease_until": nil, "summary_lease_since": nil}).Error
	return wrapError(err, "session", id)
}

// SummaryFailed stores a failed attempt at a summary: its events, its model calls, and the
// failure of the model, if it is to blame.
func (r *Sessions) SummaryFailed(ctx context.Context, tenant core.Tenant, f core.SummaryFailure) ([]core.Event, error) {
	return changeSession(ctx, r.db, f.SessionID, func(stx *sessionTx) error {
		if f.Reason != "" {
			stx.countFailure(f.Reason)
		}
		stx.emitEvents(f.Events...)
		return stx.recordCalls(f.ModelCalls, "")
	}, visibleTo(tenant))
}

// countFailure counts a failure of the summary model. From the third in a row on, each
// failure opens the breaker; one attempt precedes each.
func (stx *sessionTx) countFailure(reason string) {
	stx.session.SummaryFailures, stx.session.SummaryFailure = stx.session.SummaryFailures+1, reason
	if stx.session.SummaryFailures >= core.BreakerFailures {
		stx.clocks["summary_breaker_until"] = gorm.Expr(clockSQL(stx.tx, core.BreakerTime))
	}
}

// A session has at most one prepared summary. It extends the active summary and ends on the
// current path: any change of one or the other drops it in the same transaction. A summary
// that was dropped before it was active is never restored by a change of the path, as that
// would summarize early. A later prompt that needs it can still use it.

// preparedOf is the condition for the prepared summary, in the words of the partial index.
func preparedOf(session core.SessionID) clause.Expr {
	return gorm.Expr("session_id = ? AND kind = 'rolling' AND state = 'prepared'", session)
}

// prepareSummary stores the next version of the summary, which is not active yet, and
// returns its number. It replaces an earlier prepared one.
func (stx *sessionTx) prepareSummary(s core.Summary) (int, error) {
	s, err := stx.withNextVersion(s)
	if err != nil {
		return 0, err
	}
	s.ActivatedAt = nil
	if err := stx.dropPrepared(); err != nil {
		return 0, err
	}
	addBytes(stx, 1, []core.Summary{s})
	return s.Version, wrapError(insertRows(stx.tx, &s), "summary", s.ID)
}

// usableSQL is the condition for versions of a conversation's summary that a prompt can
// contain: those that were active, the prepared one, and those that were written for a
// certain model and no longer needed when they were ready.
const usableSQL = `s.kind = 'rolling' AND (s.state = 'prepared' OR s.state IN ('active', 'dropped') AND (s.activated_at IS NOT NULL OR s.made_for > 0))`

const useSQL = `SELECT s.* FROM session_summaries s JOIN messages m ON m.id = s.through_id
WHERE s.session_id = ? AND s.version = ? AND m.on_path AND ` + usableSQL

// useVersion activates a version of the summary, or removes the active one (0), and drops
// the prepared one, which extends another. ErrStale: the version can no longer be used.
func (stx *sessionTx) useVersion(version int) error {
	before := stx.session.SummaryThroughSeq
	if version == 0 {
		if err := stx.clearSummary(); err != nil {
			return err
		}
		return stx.resumeLoops(math.MaxInt64)
	}
	var rows []core.Summary
	if err := stx.tx.Raw(useSQL, stx.session.ID, version).Scan(&rows).Error; err != nil {
		return err
	}
	if len(rows) == 0 || version == stx.session.SummaryVersion {
		return core.Errorf(core.ErrStale, "summary %d of session %s can no longer be used; load the session again", version, stx.session.ID)
	}
	s, now := rows[0], core.Now()
	s.ActivatedAt = &now
	row := stx.tx.Model(&core.Summary{}).Where("id = ?", s.ID).Session(&gorm.Session{})
	// It must not count as prepared: replaceSummary drops the prepared one.
	err := row.UpdateColumns(map[string]any{"state": core.SummaryDropped, "activated_at": now}).Error
	if err == nil {
		err = stx.replaceSummary(s)
	}
	switch {
	case err != nil:
	case s.ThroughSeq < before:
		err = stx.resumeLoops(math.MaxInt64)
	default:
		err = stx.dropLoops(s)
	}
	if err == nil {
		err = row.UpdateColumn("state", core.SummaryActive).Error
	}
	stx.session.SummaryCount++
	return err
}

// dropPrepared drops the prepared summary, if there is one.
func (stx *sessionTx) dropPrepared() error {
	return stx.tx.Model(&core.Summary{}).Where(preparedOf(stx.session.ID)).UpdateColumn("state", core.SummaryDropped).Error
}

// dropPreparedFrom drops the prepared summary unless it ends on the current path,
// before the given seq.
func (stx *sessionTx) dropPreparedFrom(before int64) error {
	return stx.tx.Model(&core.Summary{}).Where(preparedOf(stx.session.ID)).
		Where("through_seq >= ? OR NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = session_summaries.through_id AND m.on_path)", before).
		UpdateColumn("state", core.SummaryDropped).Error
}
