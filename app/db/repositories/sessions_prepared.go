package repositories

import (
	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// A session has at most one prepared summary. It extends the summary in use and
// ends on the current path: whatever changes one or the other drops it in the same
// transaction. One that was dropped without having been in use stays for the
// record, and is never fallen back to: that would summarize early (W5).

// preparedOf narrows a question about summaries to the prepared one, as the index
// says it.
func preparedOf(session string) func(*gorm.DB) *gorm.DB {
	return func(db *gorm.DB) *gorm.DB {
		return db.Where("session_id = ? AND kind = 'rolling' AND state = 'prepared'", session)
	}
}

// prepare stores the next version of the summary, which is not used yet, and
// returns its number. It takes the place of one that was prepared before.
func (j *journal) prepare(s core.Summary) (int, error) {
	s, err := j.numbered(s)
	if err != nil {
		return 0, err
	}
	s.ActivatedAt = nil
	if err := j.dropPrepared(); err != nil {
		return 0, err
	}
	row := models.SummaryFrom(s)
	return s.Version, failure(insert(j.tx, &row), "summary", s.ID)
}

// activatePrepared puts the prepared summary to use. ErrStale: it is another one,
// or there is none.
func (j *journal) activatePrepared(version int) error {
	var rows []models.Summary
	err := j.tx.Scopes(preparedOf(j.session.ID)).Where("version = ?", version).Find(&rows).Error
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return core.Errorf(core.ErrStale, "summary %d of session %s is not prepared any more; load the session again", version, j.session.ID)
	}
	s, now := rows[0].Core(), core.Now()
	s.ActivatedAt = &now
	// Not the prepared one any more, before succeed drops that.
	err = j.tx.Model(&models.Summary{}).Where("id = ?", s.ID).UpdateColumns(map[string]any{"state": core.SummaryDropped, "activated_at": now}).Error
	if err == nil {
		err = j.succeed(s)
	}
	if err == nil {
		err = j.dropLoops(s)
	}
	if err == nil {
		err = j.tx.Model(&models.Summary{}).Where("id = ?", s.ID).UpdateColumn("state", core.SummaryActive).Error
	}
	j.countSummary()
	return err
}

// dropPrepared drops the prepared summary, if there is one.
func (j *journal) dropPrepared() error {
	return j.tx.Model(&models.Summary{}).Scopes(preparedOf(j.session.ID)).UpdateColumn("state", core.SummaryDropped).Error
}

// dropPreparedFrom drops the prepared summary unless it ends on the current path,
// before the given seq.
func (j *journal) dropPreparedFrom(before int64) error {
	return j.tx.Model(&models.Summary{}).Scopes(preparedOf(j.session.ID)).
		Where("through_seq >= ? OR NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = session_summaries.through_id AND m.on_path)", before).
		UpdateColumn("state", core.SummaryDropped).Error
}
