package repositories

import (
	"errors"
	"maps"
	"strings"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/core/conversation"
	"bobbin/app/db/commit"
	"bobbin/app/db/models"
)

// sessionTx changes a session: in a transaction that has locked its row, or by a change that is
// decided without a lock and fails if another one comes first (shareLog). It alone assigns the next
// numbers, and saveChanges writes them back.
type sessionTx struct {
	tx      *gorm.DB       // of a change it refuses every statement, with commit.ErrAlone
	read    *gorm.DB       // for queries that a change may make
	change  *commit.Change // nil = the session's row is locked
	loaded  *loadedSession // of a change: the session as it was
	session models.Session // as it will be after the commit
	changes map[string]any // columns of the session that saveChanges writes
	events  []core.Event   // numbered, written by saveChanges

	days []models.UsageDay // usage to add, by day
}

// update executes an UPDATE of other rows, with % for each of the values of these types: now, or with the
// change.
func (stx *sessionTx) update(sql string, kinds []string, values ...any) error {
	if stx.change != nil {
		stx.change.Update(sql, kinds, values...)
		return nil
	}
	return stx.tx.Exec(strings.ReplaceAll(sql, "%", "?"), values...).Error
}

// insert inserts rows that are new: now, or with the change.
func (stx *sessionTx) insert(rows any) error {
	if stx.change != nil {
		return stx.change.Insert(rows)
	}
	return insertRows(stx.tx, rows)
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
	if err := stx.insert(&rows); err != nil {
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
	return wrapError(stx.insert(&rows), "session", stx.session.ID)
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
	if err := stx.insert(&rows); err != nil {
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
	err := stx.updateSession(changes)
	if err == nil {
		err = stx.setSlackSeq()
	}
	if rows := sumDays(stx.days); err == nil && len(rows) > 0 {
		if stx.change != nil {
			err = stx.change.Insert(&rows)
		} else {
			err = commit.Insert(stx.tx, &rows)
		}
	}
	return wrapError(err, "session", stx.session.ID)
}

// updateSession sets columns of the session. A change sets those that it knows.
func (stx *sessionTx) updateSession(changes map[string]any) error {
	if stx.change == nil {
		changes, err := storableChanges(changes)
		if err != nil {
			return err
		}
		return stx.tx.Model(&models.Session{}).Where("id = ?", stx.session.ID).UpdateColumns(changes).Error
	}
	for column := range changes {
		if !commit.Sets(column) {
			return commit.ErrAlone
		}
	}
	return nil
}

// isNotFound reports whether err is a core.ErrNotFound.
func isNotFound(err error) bool { return errors.Is(err, core.ErrNotFound) }
