package repositories

import (
	"errors"
	"slices"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// errAlreadyWritten: an earlier attempt committed the write, and its reply was lost.
var errAlreadyWritten = errors.New("the write was already committed")

// refusedWrite returns why the run's row could not be changed: errAlreadyWritten, or
// ErrStale.
func (stx *sessionTx) refusedWrite(w core.RunWrite) error {
	if w.ID == "" {
		return staleRunError(w.RunID)
	}
	var rows []models.Run
	err := stx.tx.Select("id").Where("id = ? AND session_id = ? AND attempt = ? AND last_write = ?", w.RunID, stx.session.ID, w.Attempt, w.ID).Find(&rows).Error
	switch {
	case err != nil:
		return err
	case len(rows) == 0:
		return staleRunError(w.RunID)
	}
	return errAlreadyWritten
}

// repeatedWrite returns the result of a write that was already committed. Its events are
// among the newest of the run; older ones in the list do no harm, as watchers know their
// numbers.
func (stx *sessionTx) repeatedWrite(w core.RunWrite) (core.Written, error) {
	var row models.Run
	if err := stx.tx.Where("id = ?", w.RunID).Take(&row).Error; err != nil {
		return core.Written{}, err
	}
	run, err := row.Core()
	if err != nil {
		return core.Written{}, err
	}
	stored, err := stx.storedMessages(w.Messages)
	if err != nil {
		return core.Written{}, err
	}
	events, err := newestEvents(stx.tx, w)
	return core.Written{Messages: stored, Events: events, Run: run, MoreQueued: stx.session.LastQueueSeq > run.QueueSeq}, err
}

// storedMessages returns the messages as they are in the log.
func (stx *sessionTx) storedMessages(messages []core.Message) ([]core.Message, error) {
	if len(messages) == 0 {
		return nil, nil
	}
	known, _, err := stx.findLogged(messages)
	if err != nil {
		return nil, err
	}
	return inOrder(messages, known), nil
}

// newestEvents returns as many of the run's newest events as the write can have emitted, in
// order.
func newestEvents(tx *gorm.DB, w core.RunWrite) ([]core.Event, error) {
	maxEvents := len(w.Messages) + len(w.Events) + 1
	if w.Wait != nil {
		maxEvents += len(w.Wait.Approvals)
	}
	var rows []models.Event
	err := tx.Where("session_id = ? AND run_id = ?", w.SessionID, w.RunID).Order("event_seq DESC").Limit(maxEvents).Find(&rows).Error
	if err != nil {
		return nil, err
	}
	slices.Reverse(rows)
	return renderEvents(tx, w.SessionID, rows)
}
