package repositories

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"
	"strconv"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/core/conversation"
	"bobbin/app/db/commit"
	"bobbin/app/db/models"
)

// Summaries reads the versions of sessions' summaries; Sessions.ApplyContext writes them.
// Safe for concurrent use.
type Summaries struct{ db *gorm.DB }

// NewSummaries returns the summaries in db.
func NewSummaries(db *gorm.DB) *Summaries { return &Summaries{db: db} }

// List returns the versions of a session's summary, the newest first.
func (r *Summaries) List(ctx context.Context, tenant core.Tenant, id core.SessionID, q core.PageQuery) (core.Page[core.Summary], error) {
	db := byID(ctx, r.db, "session", id)
	long := longColumns{texts: []string{"content"}, jsons: []string{"native"}}
	page, err := findPage(db.Model(&core.Summary{}).Where(withinSession(tenant, id)), keyset[core.Summary]{list: "summaries", column: "version"}, q, long,
		func(s core.Summary) position { return position{N: int64(s.Version)} })
	if err == nil && len(page.Items) == 0 {
		err = requireVisible(db, tenant, id)
	}
	return page, wrapError(err, "session", id)
}

// Get returns one version of a session's summary.
func (r *Summaries) Get(ctx context.Context, tenant core.Tenant, id core.SessionID, version int) (core.Summary, error) {
	db := byID(ctx, r.db, "session", id)
	var row core.Summary
	err := db.Where(withinSession(tenant, id)).Where("version = ?", version).Take(&row).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		if err = requireVisible(db, tenant, id); err == nil {
			err = core.Errorf(core.ErrNotFound, "session %s has no summary with version %d", id, version)
		}
	}
	return row, wrapError(err, "session", id)
}

// maxVersions bounds the result of Versions.
const maxVersions = 256

const versionsSQL = `SELECT s.id, s.version, s.state, s.through_id, s.through_seq, s.token_count, s.messages_covered, s.tokens_covered, s.made_for
FROM session_summaries s JOIN messages m ON m.id = s.through_id
WHERE s.session_id = @s AND s.owner = @owner AND m.on_path AND ` + usableSQL + `
ORDER BY s.through_seq DESC, s.version DESC LIMIT @max`

// Versions returns the versions of the conversation's summary that a prompt can contain,
// without their text, in ascending order of what they cover. Of several that cover the same
// messages it returns the newest, and of more than maxVersions those that cover most.
func (r *Summaries) Versions(ctx context.Context, tenant core.Tenant, id core.SessionID) ([]core.SummaryVersion, error) {
	db := byID(ctx, r.db, "session", id)
	if err := requireVisible(db, tenant, id); err != nil {
		return nil, err
	}
	rows, err := scan[[]core.Summary](db.Raw(versionsSQL, sql.Named("s", id), sql.Named("owner", tenant.Owner), sql.Named("max", maxVersions)))
	if err != nil {
		return nil, wrapError(err, "session", id)
	}
	rows = slices.CompactFunc(rows, func(a, b core.Summary) bool { return a.ThroughSeq == b.ThroughSeq })
	slices.Reverse(rows)
	return mapRows(rows, core.Summary.AsVersion), nil
}

// Covered returns the tokens of the messages that each version covers, also of those undone.
func (r *Summaries) Covered(ctx context.Context, tenant core.Tenant, id core.SessionID) (map[int]int, error) {
	db := byID(ctx, r.db, "session", id)
	rows, err := findRows[core.Summary](db.Where(withinSession(tenant, id)).Select("version", "tokens_covered"))
	covered := map[int]int{}
	for _, s := range rows {
		covered[s.Version] = s.TokensCovered
	}
	if err == nil && len(rows) == 0 {
		err = requireVisible(db, tenant, id)
	}
	return covered, wrapError(err, "session", id)
}

// Restorable returns a version of a session's summary if it may become the active one
// again: it must be a summary of the whole conversation, its text must still exist, and its
// last message must be on the current path. Otherwise it returns ErrUnprocessable with the
// reason, and ErrNotFound for a version that does not exist.
func (r *Summaries) Restorable(ctx context.Context, tenant core.Tenant, id core.SessionID, version int) (core.Summary, error) {
	row, err := r.Get(ctx, tenant, id, version)
	if err == nil {
		err = checkRestorable(r.db.WithContext(ctx), row)
	}
	return row, wrapError(err, "session", id)
}

// checkRestorable returns the error of Restorable for a version.
func checkRestorable(db *gorm.DB, row core.Summary) error {
	version := row.Version
	switch {
	case row.Kind != core.SummaryRolling:
		return core.Errorf(core.ErrUnprocessable, "version %d is the summary of one run's tool calls and not of the conversation", version)
	case row.ActivatedAt == nil && row.State != core.SummaryErased:
		return core.Errorf(core.ErrUnprocessable, "version %d was prepared in advance and never used", version)
	case row.State == core.SummaryErased:
		return core.Errorf(core.ErrUnprocessable, "version %d was erased: a message that it covered was deleted or edited", version)
	}
	var last core.Message
	err := db.Select("id, on_path").Where("id = ?", row.ThroughID).Take(&last).Error
	if err == nil && !last.OnPath {
		err = core.Errorf(core.ErrUnprocessable, "version %d ends with message %s, which is on another branch: select that branch first", version, row.ThroughID)
	}
	return err
}

// RestoreSummary makes an earlier version of the summary the active one, with its cursor,
// or leaves the session without one (version 0), if the session's prompt revision is still
// in.Expect; otherwise it returns ErrStale. A version becomes a new one that repeats it.
// Versions on the path that cover more are no longer restored when the path changes; notes
// on tool loops that they had passed become active again. Other errors are those of
// Summaries.Restorable.
func (r *Sessions) RestoreSummary(ctx context.Context, tenant core.Tenant, in core.SummaryRestore) (core.Session, []core.Event, error) {
	events, err := changeOnce(ctx, r.db, in.SessionID, func(stx *sessionTx) error {
		if stx.session.PromptRevision != in.Expect {
			return core.Errorf(core.ErrStale, "session %s was compacted by another process; load it again", in.SessionID)
		}
		stx.raiseRevision(in.PromptState)
		version, err := stx.restoreVersion(in.Version)
		if err != nil {
			return err
		}
		if err := stx.resumeLoops(math.MaxInt64); err != nil {
			return err
		}
		stx.emitEvents(conversation.WithVersion(in.Events, version)...)
		return nil
	}, visibleTo(tenant))
	if err != nil {
		return core.Session{}, nil, err
	}
	session, err := r.Get(ctx, tenant, in.SessionID)
	return session, events, err
}

// restoreVersion repeats the version, or clears the summary, and returns the number of the
// new version.
func (stx *sessionTx) restoreVersion(version int) (int, error) {
	if version == 0 {
		err := stx.undoVersions(core.Summary{})
		if err == nil {
			err = stx.dropPrepared() // it extends the summary that goes
		}
		if err == nil {
			err = stx.clearSummary()
		}
		return 0, err
	}
	row, err := takeRow[core.Summary](stx.tx.Where("session_id = ? AND version = ?", stx.session.ID, version), "summary version", strconv.Itoa(version))
	if err == nil {
		err = checkRestorable(stx.tx, row)
	}
	if err == nil {
		err = stx.undoVersions(row)
	}
	if err != nil {
		return 0, err
	}
	s := repeatVersion(row, core.TriggerRestore, "")
	s.MadeFor = 0 // a person wants it, whatever the model is
	return stx.activateSummary(s)
}

const undoSQL = `UPDATE session_summaries SET state = 'undone'
WHERE session_id = @s AND kind = 'rolling' AND state IN ('active', 'dropped', 'prepared')
AND (through_seq > @through OR through_seq = @through AND version > @version)
AND EXISTS (SELECT 1 FROM messages m WHERE m.id = through_id AND m.on_path)`

// undoVersions withdraws the versions on the path that end after the given one, or end with
// it and are newer. Otherwise fallBack would restore them when the path changes.
func (stx *sessionTx) undoVersions(to core.Summary) error {
	return stx.tx.Exec(undoSQL, sql.Named("s", stx.session.ID), sql.Named("through", to.ThroughSeq), sql.Named("version", to.Version)).Error
}

// Before returns the newest version of the conversation's summary before the given one
// whose text still exists; ErrNotFound if there is none.
func (r *Summaries) Before(ctx context.Context, tenant core.Tenant, id core.SessionID, version int) (core.Summary, error) {
	return takeRow[core.Summary](byID(ctx, r.db, "session", id).Where(withinSession(tenant, id)).
		Where("kind = 'rolling' AND state IN ('active', 'dropped', 'undone') AND activated_at IS NOT NULL AND version < ?", version).Order("version DESC"), "session", id)
}

const firstSQL = `SELECT COALESCE(MIN(s.version), 0) FROM session_summaries s JOIN messages m ON m.id = s.through_id
WHERE s.session_id = @s AND s.owner = @owner AND s.kind = 'rolling' AND s.activated_at IS NOT NULL AND s.through_seq >= @seq AND m.on_path`

// FirstCovering returns the first version of the summary of the present conversation that
// covered the message with the seq; 0 = none.
func (r *Summaries) FirstCovering(ctx context.Context, tenant core.Tenant, id core.SessionID, seq int64) (int, error) {
	db := byID(ctx, r.db, "session", id)
	if err := requireVisible(db, tenant, id); err != nil {
		return 0, err
	}
	version, err := scan[int](db.Raw(firstSQL, sql.Named("s", id), sql.Named("owner", tenant.Owner), sql.Named("seq", seq)))
	return version, wrapError(err, "session", id)
}

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
	return s.Version, wrapError(commit.Insert(stx.tx, &s), "summary", s.ID)
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
