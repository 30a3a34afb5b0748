package repositories

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/db/commit"
	"bobbin/app/db/models"
)

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

// inSessionTurn runs fn in a transaction when it is the caller's turn to write to the session.
// Another transaction that is in the way is waited for as long as a turn; fn begins anew then, as after
// a collision. So what is reported as busy has been busy for long.
func inSessionTurn(ctx context.Context, g *gorm.DB, id core.SessionID, fn func(tx *gorm.DB) error) error {
	until := time.Now().Add(commit.MaxTurnWait)
	release, err := takeTurn(ctx, g, id)
	if err != nil {
		return err
	}
	defer release()
	for tries := 1; ; tries++ {
		err = inTx(ctx, g, fn)
		if again := isLockTimeout(err) && time.Now().Before(until) || isCollision(err) && tries < txTries; !again {
			return err
		}
	}
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
