package repositories

import (
	"errors"
	"slices"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// errWritten: the write was committed by a try before this one, whose answer got lost.
var errWritten = errors.New("the write was done before")

// refusal says why the run's row could not be changed: errWritten, or ErrStale.
func (j *journal) refusal(w core.RunWrite) error {
	if w.ID == "" {
		return stale(w.RunID)
	}
	var rows []models.Run
	err := j.tx.Select("id").Where("id = ? AND session_id = ? AND attempt = ? AND last_write = ?", w.RunID, j.session.ID, w.Attempt, w.ID).Find(&rows).Error
	switch {
	case err != nil:
		return err
	case len(rows) == 0:
		return stale(w.RunID)
	}
	return errWritten
}

// again returns what a write came to that was committed before. Its events are among
// the newest of the run; a few that are older do no harm, as who watches knows their
// numbers.
func (j *journal) again(w core.RunWrite) (core.Written, error) {
	var row models.Run
	if err := j.tx.Where("id = ?", w.RunID).Take(&row).Error; err != nil {
		return core.Written{}, err
	}
	run, err := row.Core()
	if err != nil {
		return core.Written{}, err
	}
	stored, err := j.storedOf(w.Messages)
	if err != nil {
		return core.Written{}, err
	}
	events, err := newestOf(j.tx, w)
	return core.Written{Messages: stored, Events: events, Run: run}, err
}

// storedOf returns the messages as the log has them.
func (j *journal) storedOf(messages []core.Message) ([]core.Message, error) {
	if len(messages) == 0 {
		return nil, nil
	}
	known, _, err := j.logged(messages)
	if err != nil {
		return nil, err
	}
	return inOrder(messages, known), nil
}

// newestOf returns as many of the run's newest events as the write can have made, in
// their order.
func newestOf(tx *gorm.DB, w core.RunWrite) ([]core.Event, error) {
	most := len(w.Messages) + len(w.Events) + 1
	if w.Wait != nil {
		most += len(w.Wait.Approvals)
	}
	var rows []models.Event
	err := tx.Where("session_id = ? AND run_id = ?", w.SessionID, w.RunID).Order("event_seq DESC").Limit(most).Find(&rows).Error
	if err != nil {
		return nil, err
	}
	slices.Reverse(rows)
	return values(rows, sure(models.Event.Core))
}
