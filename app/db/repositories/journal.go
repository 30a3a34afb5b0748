package repositories

import (
	"errors"
	"maps"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// journal adds to a session whose row its transaction has locked: it alone gives
// the next numbers, and close writes them back.
type journal struct {
	tx      *gorm.DB
	session models.Session // as it will be
	changes map[string]any // columns of the session that close writes
	events  []core.Event   // numbered, written by close
}

// lockSession waits until no other transaction adds to the session and begins to.
// Conditions narrow which session may be meant.
func lockSession(tx *gorm.DB, id core.SessionID, conds ...func(*gorm.DB) *gorm.DB) (*journal, error) {
	if err := known("session", id); err != nil {
		return nil, err
	}
	var row models.Session
	err := tx.Scopes(conds...).Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}).
		Where("id = ?", id).Take(&row).Error
	if err != nil {
		return nil, failure(err, "session", id)
	}
	return &journal{tx: tx, session: row, changes: map[string]any{}}, nil
}

// touch makes now the time of the session's last activity.
func (j *journal) touch() {
	j.session.UpdatedAt = core.Now()
	j.changes["updated_at"] = j.session.UpdatedAt
}

// add appends messages to the log, each a child of the one before, the first of
// them of parent, and an event for each. What a message lacks, its session and
// the run give.
func (j *journal) add(messages []core.Message, parent core.MessageID, run core.RunID) ([]core.Message, error) {
	stored, err := j.put(messages, parent, run)
	for _, m := range stored {
		j.emit(core.NewEvent(m.SessionID, m.RunID, core.EventMessageCreated, core.MessageData{Message: m}))
	}
	return stored, err
}

// put is add without the events.
func (j *journal) put(messages []core.Message, parent core.MessageID, run core.RunID) ([]core.Message, error) {
	if len(messages) == 0 {
		return nil, nil
	}
	rows := make([]models.Message, 0, len(messages))
	stored := make([]core.Message, 0, len(messages))
	for _, m := range messages {
		j.session.LastSeq++
		j.session.MessageCount++
		m = completed(m, run)
		m.SessionID, m.Owner = core.SessionID(j.session.ID), j.session.Owner
		m.Seq, m.ParentID, m.OnPath = j.session.LastSeq, parent, true
		parent = m.ID
		if err := j.refer(m); err != nil {
			return nil, failure(err, "message", m.ID)
		}
		rows = append(rows, models.MessageFrom(m))
		stored = append(stored, m)
	}
	if err := insert(j.tx, &rows); err != nil {
		return nil, failure(err, "message", stored[0].ID)
	}
	if err := j.indexMessages(stored); err != nil {
		return nil, failure(err, "message", stored[0].ID)
	}
	j.changes["last_seq"] = j.session.LastSeq
	j.changes["message_count"] = j.session.MessageCount
	j.touch()
	return stored, nil
}

// completed gives a message what it lacks by itself.
func completed(m core.Message, run core.RunID) core.Message {
	if m.ID == "" {
		m.ID = core.NewID[core.MessageID]()
	}
	if m.RunID == "" {
		m.RunID = run
	}
	if m.Status == "" {
		m.Status = core.MessageComplete
	}
	if m.CreatedAt.IsZero() {
		m.CreatedAt = core.Now()
	}
	return m
}

// emit numbers events, which close writes.
func (j *journal) emit(events ...core.Event) {
	for _, e := range events {
		j.session.LastEventSeq++
		e.SessionID, e.Seq = core.SessionID(j.session.ID), j.session.LastEventSeq
		if e.At.IsZero() {
			e.At = core.Now()
		}
		j.events = append(j.events, e)
	}
}

// book writes model calls, completed from the session and the run.
func (j *journal) book(calls []core.ModelCall, run core.RunID) error {
	rows := make([]models.ModelCall, 0, len(calls))
	for _, c := range calls {
		c.SessionID, c.Owner = core.SessionID(j.session.ID), j.session.Owner
		if c.User == "" {
			c.User = j.session.UserID
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
	return failure(insert(j.tx, &rows), "session", j.session.ID)
}

// close writes the events and the session's changed columns: one statement each.
// A new title is brought into the search index.
func (j *journal) close() error {
	rows := make([]models.Event, 0, len(j.events))
	for _, e := range j.events {
		rows = append(rows, models.EventFrom(j.session.Owner, e))
	}
	if err := insert(j.tx, &rows); err != nil {
		return failure(err, "session", j.session.ID)
	}
	if _, renamed := j.changes["title"]; renamed {
		if err := j.indexTitle(); err != nil {
			return failure(err, "session", j.session.ID)
		}
	}
	changes := maps.Clone(j.changes)
	if len(j.events) > 0 {
		changes["last_event_seq"] = j.session.LastEventSeq
	}
	if len(changes) == 0 {
		return nil
	}
	changes, err := checked(changes)
	if err == nil {
		err = j.tx.Model(&models.Session{}).Where("id = ?", j.session.ID).UpdateColumns(changes).Error
	}
	return failure(err, "session", j.session.ID)
}

// isNotFound reports whether err is a core.ErrNotFound.
func isNotFound(err error) bool { return errors.Is(err, core.ErrNotFound) }
