package repositories

import (
	"errors"
	"maps"
	"reflect"

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
	tx      *gorm.DB // of a change it refuses every statement, with commit.ErrAlone
	read    *gorm.DB // for queries that a change may make
	change  *commit.Change
	loaded  *loadedSession // the session as it was; nil = its row is locked
	before  models.Session // as it is in the database
	session models.Session // as it will be after the commit
	clocks  map[string]any // other columns for saveChanges, of the database's clock
	events  []core.Event   // numbered, written by saveChanges
	saved   int            // of them
	result  string         // its name for a repeated request (changeOnce)

	days []models.UsageDay // usage to add, by day
}

// newSessionTx returns a transaction that has locked the session.
func newSessionTx(tx *gorm.DB, row models.Session) *sessionTx {
	return &sessionTx{tx: tx, read: tx, change: commit.Alone(tx), before: row, session: row, clocks: map[string]any{}}
}

// setUpdatedAt sets the time of the session's last activity to now.
func (stx *sessionTx) setUpdatedAt() { stx.session.UpdatedAt = core.Now() }

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
		ID: stx.session.ID, Owner: stx.session.Owner,
		LastSeq: stx.session.LastSeq, MessageCount: stx.session.MessageCount, Speakers: stx.session.Speakers,
	}
	log, stored := conversation.Append(log, messages, parent, run)
	stx.session.LastSeq, stx.session.MessageCount, stx.session.Speakers = log.LastSeq, log.MessageCount, log.Speakers
	for _, m := range stored {
		if err := stx.linkBlobs(m); err != nil {
			return nil, wrapError(err, "message", m.ID)
		}
	}
	if err := stx.change.Insert(&stored); err != nil {
		return nil, wrapError(err, "message", stored[0].ID)
	}
	var revisions []core.Revision
	addBytes(stx, 1, stored)
	for i, m := range stored {
		for k, r := range m.Revisions {
			r.MessageID, r.Number, r.SessionID, r.Owner = m.ID, int64(k+1), m.SessionID, m.Owner
			revisions = append(revisions, r)
		}
		stored[i].Revisions = nil // events have none
	}
	if err := insertRows(stx.tx, &revisions); err != nil {
		return nil, wrapError(err, "message", stored[0].ID)
	}
	stx.extendLog(0)
	return stored, nil
}

// extendLog moves the end of the log past the next n stored messages.
func (stx *sessionTx) extendLog(n int) {
	stx.session.LastSeq += int64(n)
	stx.session.MessageCount += n
	stx.setUpdatedAt()
}

// emitEvents numbers events; saveChanges writes them.
func (stx *sessionTx) emitEvents(events ...core.Event) {
	for _, e := range events {
		stx.session.LastEventSeq++
		e.SessionID, e.Seq = stx.session.ID, stx.session.LastEventSeq
		e.Owner = core.EventOwner{Owner: stx.session.Owner, User: stx.session.UserID}
		stx.events = append(stx.events, e)
	}
}

// recordCalls inserts model calls, with missing fields from the session and the run.
func (stx *sessionTx) recordCalls(calls []core.ModelCall, run core.RunID) error {
	rows := make([]core.ModelCall, 0, len(calls))
	for _, c := range calls {
		c.SessionID, c.Owner = stx.session.ID, stx.session.Owner
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
		rows = append(rows, c)
	}
	for _, c := range rows {
		stx.session.Usage = sumUsage(stx.session.Usage, callUsage(c), 1)
		stx.days = append(stx.days, usageDays(c, usageShard(string(stx.session.ID)))...)
	}
	return wrapError(stx.change.Insert(&rows), "session", stx.session.ID)
}

// saveChanges writes the events and the session's changed columns, with one statement each,
// and indexes a new title. The usage of days comes last, because other sessions add to the
// same rows.
func (stx *sessionTx) saveChanges() error {
	rows := make([]models.Event, 0, len(stx.events))
	for i := stx.saved; i < len(stx.events); i++ {
		e := &stx.events[i]
		row, err := models.EventFrom(stx.session.Owner, *e)
		e.Size, e.Frame = len(row.Data), &core.Frame{Data: row.Data}
		if ref := referenceOf(*e, len(row.Data)); ref != nil && err == nil {
			row.Data, err = models.EventData(ref)
		}
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	stx.session.StoredBytes = max(0, stx.session.StoredBytes)
	err := stx.change.Insert(&rows)
	if err == nil && stx.session.Title != stx.before.Title {
		err = stx.indexTitle()
	}
	if err == nil {
		err = stx.updateSession()
	}
	if err == nil && stx.session.Slack && len(rows) > 0 { // its thread is thereby behind
		_, err = stx.change.Update("UPDATE slack_threads SET last_seq = % WHERE session_id = %", "bigint uuid", stx.session.LastEventSeq, stx.session.ID)
	}
	if err == nil {
		err = stx.change.Insert(sumDays(stx.days))
	}
	stx.before, stx.saved, stx.days = stx.session, len(stx.events), nil
	return wrapError(err, "session", stx.session.ID)
}

// updateSession writes the changed columns of the session, unless they are part of a change.
func (stx *sessionTx) updateSession() error {
	stmt := &gorm.Statement{DB: stx.read}
	if err := stmt.Parse(&stx.session); err != nil || stx.loaded != nil {
		return err
	}
	before, after, changed := reflect.ValueOf(stx.before), reflect.ValueOf(stx.session), maps.Clone(stx.clocks)
	for _, f := range stmt.Schema.Fields {
		old, _ := f.ValueOf(stx.read.Statement.Context, before)
		if v, _ := f.ValueOf(stx.read.Statement.Context, after); f.DBName != "" && !reflect.DeepEqual(old, v) {
			changed[f.DBName] = v
		}
	}
	if clear(stx.clocks); len(changed) == 0 {
		return nil
	}
	return stx.tx.Model(&models.Session{}).Where("id = ?", stx.session.ID).UpdateColumns(changed).Error
}

// isNotFound reports whether err is a core.ErrNotFound.
func isNotFound(err error) bool { return errors.Is(err, core.ErrNotFound) }
