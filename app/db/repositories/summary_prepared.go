package repositories

import (
	"math"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// A session has at most one prepared summary. It extends the active summary and ends on the
// current path: any change of one or the other drops it in the same transaction. A summary
// that was dropped before it was active is never restored by a change of the path, as that
// would summarize early. A later prompt that needs it can still use it.

// preparedOf narrows a query on summaries to the prepared one, in the words of the partial
// index.
func preparedOf(session string) func(*gorm.DB) *gorm.DB {
	return func(db *gorm.DB) *gorm.DB {
		return db.Where("session_id = ? AND kind = 'rolling' AND state = 'prepared'", session)
	}
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
	row := models.SummaryFrom(s)
	return s.Version, wrapError(insertRows(stx.tx, &row), "summary", s.ID)
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
	var rows []models.Summary
	if err := stx.tx.Raw(useSQL, stx.session.ID, version).Scan(&rows).Error; err != nil {
		return err
	}
	if len(rows) == 0 || version == stx.session.SummaryVersion {
		return core.Errorf(core.ErrStale, "summary %d of session %s can no longer be used; load the session again", version, stx.session.ID)
	}
	s, now := rows[0].Core(), core.Now()
	s.ActivatedAt = &now
	row := stx.tx.Model(&models.Summary{}).Where("id = ?", s.ID).Session(&gorm.Session{})
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
	return stx.tx.Model(&models.Summary{}).Scopes(preparedOf(stx.session.ID)).UpdateColumn("state", core.SummaryDropped).Error
}

// dropPreparedFrom drops the prepared summary unless it ends on the current path,
// before the given seq.
func (stx *sessionTx) dropPreparedFrom(before int64) error {
	return stx.tx.Model(&models.Summary{}).Scopes(preparedOf(stx.session.ID)).
		Where("through_seq >= ? OR NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = session_summaries.through_id AND m.on_path)", before).
		UpdateColumn("state", core.SummaryDropped).Error
}
