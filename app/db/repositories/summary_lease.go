package repositories

import (
	"context"
	"time"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// SummaryWork returns the state of the session's background summaries.
func (r *Sessions) SummaryWork(ctx context.Context, tenant core.Tenant, id core.SessionID) (core.SummaryWork, error) {
	var row struct {
		PromptRevision, SummaryFailures int
		SummaryFailure                  string
		Busy, Open                      bool
		SummaryBreakerUntil             *time.Time
		SummaryLeaseSince               *time.Time
		ID                              models.Ref
		Version, TokenCount             int
		MessagesCovered, TokensCovered  int
		MadeFor                         int
		ThroughID                       models.Ref
		ThroughSeq                      int64
	}
	now := clockSQL(r.db, 0)
	err := byID(ctx, r.db, "session", id).Table("(?) AS s", r.db.Model(&models.Session{}).Scopes(visibleTo(tenant)).Where("id = ?", id)).
		Joins("LEFT JOIN session_summaries p ON p.session_id = s.id AND p.kind = 'rolling' AND p.state = 'prepared'").
		Select("s.prompt_revision, s.summary_failures, s.summary_failure, s.summary_breaker_until, s.summary_lease_since, " +
			"COALESCE(s.summary_lease_until > " + now + ", false) AS busy, COALESCE(s.summary_breaker_until > " + now + ", false) AS open, " +
			"p.id, p.through_id, COALESCE(p.version, 0) AS version, COALESCE(p.through_seq, 0) AS through_seq, " +
			"COALESCE(p.made_for, 0) AS made_for, COALESCE(p.tokens_covered, 0) AS tokens_covered, " +
			"COALESCE(p.token_count, 0) AS token_count, COALESCE(p.messages_covered, 0) AS messages_covered").
		Take(&row).Error
	if err != nil {
		return core.SummaryWork{}, wrapError(err, "session", id)
	}
	w := core.SummaryWork{
		Revision: row.PromptRevision, Busy: row.Busy,
		Breaker: core.Breaker{Failures: row.SummaryFailures, Reason: row.SummaryFailure},
	}
	if row.Busy {
		w.Since = row.SummaryLeaseSince
	}
	if row.Version > 0 {
		w.Prepared = models.Summary{
			ID: string(row.ID), Version: row.Version, State: string(core.SummaryPrepared), ThroughID: row.ThroughID, ThroughSeq: row.ThroughSeq,
			TokenCount: row.TokenCount, MessagesCovered: row.MessagesCovered, TokensCovered: row.TokensCovered, MadeFor: row.MadeFor,
		}.Core().AsVersion()
	}
	if row.Open && row.SummaryBreakerUntil != nil {
		until := row.SummaryBreakerUntil.UTC()
		w.Breaker.Until = &until
	}
	return w, nil
}

// LeaseSummary lets one holder at a time summarize the session, across all processes. It
// returns whether the holder has the lease, for d by the database's clock. A holder that
// already has it extends it.
func (r *Sessions) LeaseSummary(ctx context.Context, tenant core.Tenant, id core.SessionID, holder string, d time.Duration) (core.LeaseResult, error) {
	since := gorm.Expr("CASE WHEN summary_lease_owner = ? THEN summary_lease_since ELSE "+clockSQL(r.db, 0)+" END", holder)
	take := func(when string, args ...any) (bool, error) {
		res := byID(ctx, r.db, "session", id).Model(&models.Session{}).Scopes(visibleTo(tenant)).Where("id = ?", id).Where(when, args...).
			UpdateColumns(map[string]any{"summary_lease_owner": holder, "summary_lease_until": gorm.Expr(clockSQL(r.db, d)), "summary_lease_since": since})
		return res.RowsAffected > 0, wrapError(res.Error, "session", id)
	}
	if ok, err := take("summary_lease_until IS NULL OR summary_lease_owner = ?", holder); ok || err != nil {
		return grantIf(ok, core.GrantGiven), err
	}
	if ok, err := take("summary_lease_until <= " + clockSQL(r.db, 0)); ok || err != nil {
		return grantIf(ok, core.GrantTakenOver), err
	}
	return core.GrantRefused, requireVisible(r.db.WithContext(ctx), tenant, id)
}

// grantIf returns g if the lease was granted.
func grantIf(ok bool, g core.LeaseResult) core.LeaseResult {
	if !ok {
		return core.GrantRefused
	}
	return g
}

// FreeSummary ends the holder's lease. A lease that another holder has taken over stays.
func (r *Sessions) FreeSummary(ctx context.Context, id core.SessionID, holder string) error {
	err := r.db.WithContext(ctx).Model(&models.Session{}).Where("id = ? AND summary_lease_owner = ?", id, holder).
		UpdateColumns(noSummaryLease()).Error
	return wrapError(err, "session", id)
}

// FreeSummaries ends the leases of all holders whose names have the prefix: those of a
// process that died and was restarted.
func (r *Sessions) FreeSummaries(ctx context.Context, prefix string) error {
	err := r.db.WithContext(ctx).Model(&models.Session{}).
		Where("summary_lease_until IS NOT NULL AND substr(summary_lease_owner, 1, ?) = ?", len(prefix), prefix).
		UpdateColumns(noSummaryLease()).Error
	return wrapError(err, "summaries of", prefix)
}

// noSummaryLease are the columns of a session without a summary lease.
func noSummaryLease() map[string]any {
	return map[string]any{"summary_lease_owner": "", "summary_lease_until": nil, "summary_lease_since": nil}
}

// SummaryFailed stores a failed attempt at a summary: its events, its model calls, and the
// failure of the model, if it is to blame.
func (r *Sessions) SummaryFailed(ctx context.Context, tenant core.Tenant, f core.SummaryFailure) ([]core.Event, error) {
	var stx *sessionTx
	err := changeSession(ctx, r.db, f.SessionID, func(locked *sessionTx) error {
		if stx = locked; f.Reason != "" {
			stx.countFailure(f.Reason)
		}
		stx.emitEvents(f.Events...)
		return stx.recordCalls(f.ModelCalls, "")
	}, visibleTo(tenant))
	if err != nil {
		return nil, wrapError(err, "session", f.SessionID)
	}
	return stx.events, nil
}

// countFailure counts a failure of the summary model. From the third in a row on, each
// failure opens the breaker; one attempt precedes each.
func (stx *sessionTx) countFailure(reason string) {
	stx.session.SummaryFailures, stx.session.SummaryFailure = stx.session.SummaryFailures+1, reason
	if stx.session.SummaryFailures >= core.BreakerFailures {
		stx.clocks["summary_breaker_until"] = gorm.Expr(clockSQL(stx.tx, core.BreakerTime))
	}
}
