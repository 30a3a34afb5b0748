package repositories

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

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
	if err := commit.Insert(stx.tx, &revisions); err != nil {
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

// lockTime is how long PostgreSQL waits for a row that another transaction has locked, before the
// transaction gives its connection back and begins again.
const lockTime = 2 * time.Second

// changeSession runs fn in a transaction that has locked the session's row, saves the changes, and returns
// their events. Only one transaction per session reaches the database at a time; the others wait in this process,
// and fail with core.SessionBusy when they wait too long. A hidden session is
// core.ErrNotFound.
func changeSession(ctx context.Context, db *gorm.DB, id core.SessionID, fn func(*sessionTx) error, conds ...clause.Expr) (events []core.Event, err error) {
	err = inSessionTurn(ctx, db, id, func(tx *gorm.DB) error {
		stx, err := lockSession(tx, id, conds...)
		if err != nil {
			return err
		}
		if busy := stx.session.Busy; busy == busyFork || busy == busyPurge {
			return notFound("session", id)
		}
		if err = fn(stx); err == nil {
			err = stx.saveChanges()
		}
		events = stx.events
		return err
	})
	if err != nil {
		return nil, wrapError(err, "session", id)
	}
	return events, nil
}

// changeLog is changeSession for changes to messages: it returns core.SessionBusy while the
// session is busy.
func changeLog(ctx context.Context, g *gorm.DB, id core.SessionID, fn func(*sessionTx) error, conds ...clause.Expr) ([]core.Event, error) {
	return changeSession(ctx, g, id, unlessBusy(fn), conds...)
}

func unlessBusy(fn func(*sessionTx) error) func(*sessionTx) error {
	return func(stx *sessionTx) error {
		if stx.session.Busy != "" {
			return stx.sessionBusyError()
		}
		return fn(stx)
	}
}

// changeOnce is changeSession for a request that may have an idempotency key (commitOnce). It returns no
// events if an earlier execution of the request has committed the change.
func changeOnce(ctx context.Context, g *gorm.DB, id core.SessionID, fn func(*sessionTx) error, conds ...clause.Expr) (events []core.Event, err error) {
	err = commitOnce(ctx, func(note resultRecorder) (err error) {
		events, err = changeSession(ctx, g, id, func(stx *sessionTx) error {
			if err := fn(stx); err != nil {
				return err
			}
			return note(stx.tx, stx.result)
		}, conds...)
		return err
	}, nothingToRead)
	return events, err
}

// shareLog is changeLog for a change that most often can be written together with those of other
// sessions (package commit). Fn decides it first without a lock; if it needs stx.tx, or the change is not
// written, fn is called again with the session locked.
func shareLog(g *gorm.DB, id core.SessionID, from sessionSource, fn func(*sessionTx) error, conds ...clause.Expr) error {
	ctx := g.Statement.Context
	release, err := takeTurn(ctx, g, id)
	if err != nil {
		return err
	}
	err = commit.ErrAlone
	if from.known != nil {
		err = shareChange(g, from.known, fn)
	}
	if errors.Is(err, commit.ErrAlone) {
		var row loadedSession
		if err = wrapError(from.load().Take(&row).Error, "session", id); err == nil {
			err = shareChange(g, &row, fn)
		}
	}
	release()
	if errors.Is(err, commit.ErrAlone) {
		_, err = changeLog(ctx, g, id, fn, conds...)
	}
	return err
}

// sessionSource is where a shared change has its session from: from the change before, which is tried first (nil =
// it left nothing), or else from the database, where load selects a loadedSession.
type sessionSource struct {
	known *loadedSession
	load  func() *gorm.DB
}

// shareChange is shareLog without a lock.
func shareChange(g *gorm.DB, row *loadedSession, fn func(*sessionTx) error) error {
	if row.Busy != "" {
		return commit.ErrAlone
	}
	stx := newSessionTx(g.Session(&gorm.Session{}), row.Session)
	stx.read, stx.change, stx.loaded = g, commit.NewChange(g, row.Session), row
	stx.tx.Error = commit.ErrAlone
	err := fn(stx)
	if err == nil {
		err = stx.saveChanges()
	}
	if err != nil {
		return err
	}
	return wrapError(stx.change.Write(stx.session), "session", row.ID)
}

// loadedSession is a session with what a change to it depends on.
type loadedSession struct {
	models.Session
	Facts sessionFacts   `gorm:"embedded"`
	Run   models.Run     `gorm:"embedded;embeddedPrefix:its_"`
	Hook  models.Webhook `gorm:"embedded;embeddedPrefix:hook_"` // of the owner
	After bool           `gorm:"-"`                             // it is what a change has left, with Facts.ParentID, but without the Hook
}

// knownAfter returns the session as it is after the change, for the next write of its run; the last message on the path is empty if it is not known.
func (stx *sessionTx) knownAfter(run models.Run, last core.MessageID) *loadedSession {
	return &loadedSession{Session: stx.session, Run: run, Facts: sessionFacts{ParentID: models.Ref(last)}, After: true}
}

// namedColumns lists the columns of a row type in a table, with a prefix to their names.
func namedColumns(db *gorm.DB, row any, table, prefix string) string {
	var list strings.Builder
	for _, name := range columnsOf(db, row) {
		list.WriteString(", " + table + "." + name + " AS " + prefix + name)
	}
	return list.String()[2:]
}

// inSessionTurn runs fn in a transaction when it is the caller's turn to write to the session, again if another one is in the
// way (retryTx). So what is reported as busy has been busy for long.
func inSessionTurn(ctx context.Context, g *gorm.DB, id core.SessionID, fn func(tx *gorm.DB) error) error {
	release, err := takeTurn(ctx, g, id)
	if err != nil {
		return err
	}
	defer release()
	return retryTx(func() error { return inTx(ctx, g, fn) })
}

// takeTurn waits for the caller's turn to write to the session.
func takeTurn(ctx context.Context, g *gorm.DB, id core.SessionID) (release func(), err error) {
	if err := requireID("session", id); err != nil {
		return nil, err
	}
	return commit.Of(g).Turns.Take(ctx, id)
}

// lockSession locks the session's row, busy or not, so that no other transaction adds to
// it.
func lockSession(tx *gorm.DB, id core.SessionID, conds ...clause.Expr) (*sessionTx, error) {
	var row models.Session
	locked := tx.Scopes(withRowLock("sessions", clause.LockingStrengthUpdate)).Where("sessions.id = ?", id)
	for _, cond := range conds {
		locked = locked.Where(cond)
	}
	err := locked.Take(&row).Error
	if err != nil {
		return nil, wrapError(err, "session", id)
	}
	return newSessionTx(tx, row), nil
}

// withRowLock locks the selected rows of the table on PostgreSQL; it waits for lockTime.
func withRowLock(table, strength string) func(*gorm.DB) *gorm.DB {
	return func(db *gorm.DB) *gorm.DB {
		if !isPostgres(db) {
			return db
		}
		// The statement that locks the rows also sets the timeout: another statement would
		// cost another round trip. Rows are locked last, after the subquery.
		return db.Joins(fmt.Sprintf("CROSS JOIN (SELECT set_config('lock_timeout', '%d', true)) AS lock_timeout", lockTime.Milliseconds())).
			Clauses(clause.Locking{Strength: strength, Table: clause.Table{Name: table}})
	}
}
