package repositories

import (
	"errors"
	"maps"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/core/conversation"
	"bobbin/app/db/models"
)

// sessionTx is a transaction that has locked a session's row. It alone assigns the next
// numbers, and saveChanges writes them back.
type sessionTx struct {
	tx      *gorm.DB
	later   *gorm.DB       // tx, or db.DeferWrites of it where all ids are new, so that no write is refused
	session models.Session // as it will be after the commit
	changes map[string]any // columns of the session that saveChanges writes
	events  []core.Event   // numbered, written by saveChanges

	days       []models.UsageDay      // usage to add, by day
	ownerHooks *[]models.OwnerWebhook // of the session's owner; nil = not loaded
}

// setUpdatedAt sets the time of the session's last activity to now.
func (stx *sessionTx) setUpdatedAt() {
	stx.session.UpdatedAt = core.Now()
	stx.changes["updated_at"] = stx.session.UpdatedAt
}

// appendMessages appends messages to the log (conversation.Append), and emits an event for each.
func (stx *sessionTx) appendMessages(messages []core.Message, parent core.MessageID, run core.RunID) ([]core.Message, error) {
	stored, err := stx.insertMessages(messages, parent, run)
	for _, m := range stored {
		stx.emitMessage(core.EventMessageCreated, m)
	}
	return stored, err
}

// insertMessages is appendMessages without the events.
func (stx *sessionTx) insertMessages(messages []core.Message, parent core.MessageID, run core.RunID) ([]core.Message, error) {
	if len(messages) == 0 {
		return nil, nil
	}
	log := core.Session{
		ID: core.SessionID(stx.session.ID), Owner: stx.session.Owner,
		LastSeq: stx.session.LastSeq, MessageCount: stx.session.MessageCount, Speakers: stx.session.Speakers,
	}
	log, stored := conversation.Append(log, messages, parent, run)
	stx.session.LastSeq, stx.session.MessageCount = log.LastSeq, log.MessageCount
	stx.setSpeakers(log.Speakers)
	rows := make([]models.Message, 0, len(messages))
	for _, m := range stored {
		if err := stx.linkBlobs(m); err != nil {
			return nil, wrapError(err, "message", m.ID)
		}
		rows = append(rows, models.MessageFrom(m))
	}
	if err := insertRows(stx.later, &rows); err != nil {
		return nil, wrapError(err, "message", stored[0].ID)
	}
	if err := stx.insertRevisions(stored); err != nil {
		return nil, wrapError(err, "message", stored[0].ID)
	}
	if err := stx.insertInstructions(stored); err != nil {
		return nil, wrapError(err, "message", stored[0].ID)
	}
	stx.setStoredBytes(stx.session.StoredBytes + storedBytes(rows, stored))
	for i := range stored {
		stored[i].Revisions = nil // events have none
	}
	stx.extendLog(0)
	return stored, nil
}

func (stx *sessionTx) setSpeakers(speakers string) {
	if speakers != stx.session.Speakers {
		stx.session.Speakers, stx.changes["speakers"] = speakers, speakers
	}
}

// extendLog moves the end of the log past the next n stored messages.
func (stx *sessionTx) extendLog(n int) {
	stx.session.LastSeq += int64(n)
	stx.session.MessageCount += n
	stx.changes["last_seq"] = stx.session.LastSeq
	stx.changes["message_count"] = stx.session.MessageCount
	stx.setUpdatedAt()
}

// emitEvents numbers events; saveChanges writes them.
func (stx *sessionTx) emitEvents(events ...core.Event) {
	for _, e := range events {
		stx.session.LastEventSeq++
		e.SessionID, e.Seq = core.SessionID(stx.session.ID), stx.session.LastEventSeq
		e.Owner = core.EventOwner{Owner: stx.session.Owner, User: stx.session.UserID}
		if e.At.IsZero() {
			e.At = core.Now()
		}
		stx.events = append(stx.events, e)
	}
}

// recordCalls inserts model calls, with missing fields from the session and the run.
func (stx *sessionTx) recordCalls(calls []core.ModelCall, run core.RunID) error {
	rows := make([]models.ModelCall, 0, len(calls))
	for _, c := range calls {
		c.SessionID, c.Owner = core.SessionID(stx.session.ID), stx.session.Owner
		if c.User == "" {
			c.User = stx.session.UserID
		}
		if c.RunID == "" {
			c.RunID = run
		}
		if c.ID == "" {
			c.ID = core.NewID[string]()
		}
		if c.CreatedAt.IsZero() {
			c.CreatedAt = core.Now()
		}
		rows = append(rows, models.ModelCallFrom(c))
	}
	stx.addUsage(rows)
	return wrapError(insertRows(stx.later, &rows), "session", stx.session.ID)
}

// saveChanges writes the events and the session's changed columns, with one statement each,
// and indexes a new title. The usage of days comes last, because other sessions add to the
// same rows.
func (stx *sessionTx) saveChanges() error {
	rows := make([]models.Event, 0, len(stx.events))
	for i, e := range stx.events {
		row, err := models.EventFrom(stx.session.Owner, e)
		stx.events[i].Size = len(row.Data)
		if ref := referenceOf(e, len(row.Data)); ref != nil && err == nil {
			row.Data, err = models.EventData(ref)
		}
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	if err := insertRows(stx.later, &rows); err != nil {
		return wrapError(err, "session", stx.session.ID)
	}
	if _, renamed := stx.changes["title"]; renamed {
		if err := stx.indexTitle(); err != nil {
			return wrapError(err, "session", stx.session.ID)
		}
	}
	changes := maps.Clone(stx.changes)
	if len(stx.events) > 0 {
		changes["last_event_seq"] = stx.session.LastEventSeq
	}
	if len(changes) == 0 {
		return nil
	}
	changes, err := storableChanges(changes)
	if err == nil {
		err = stx.later.Model(&models.Session{}).Where("id = ?", stx.session.ID).UpdateColumns(changes).Error
	}
	if err == nil {
		err = stx.setSlackSeq()
	}
	if err == nil {
		err = addUsageDays(stx.later, stx.days)
	}
	return wrapError(err, "session", stx.session.ID)
}

// isNotFound reports whether err is a core.ErrNotFound.
func isNotFound(err error) bool { return errors.Is(err, core.ErrNotFound) }
