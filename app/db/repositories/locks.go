package repositories

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/models"
)

// lockTime is how long PostgreSQL waits for a row that another transaction has locked, before the
// transaction gives its connection back and begins again.
const lockTime = 2 * time.Second

// A condition narrows which session matches.
type condition = func(*gorm.DB) *gorm.DB

// changeSession runs fn in a transaction that has locked the session's row. Only one
// transaction per session reaches the database at a time; the others wait in this process,
// and fail with core.SessionBusy when they wait too long. A hidden session is
// core.ErrNotFound.
func changeSession(ctx context.Context, db *gorm.DB, id core.SessionID, fn func(*sessionTx) error, conds ...condition) error {
	return changeSessionWith(ctx, db, sessionLock{id: id, conds: conds}, fn)
}

// changeSessionWith is changeSession that also executes the queries of the lock.
func changeSessionWith(ctx context.Context, db *gorm.DB, l sessionLock, fn func(*sessionTx) error) error {
	return inSessionTurn(ctx, db, l.id, func(tx *gorm.DB) error {
		stx, err := l.acquire(tx)
		if err != nil {
			return err
		}
		if isHidden(stx.session.Busy) {
			return notFound("session", l.id)
		}
		return fn(stx)
	})
}

// changeLog is changeSession for changes to messages: it returns core.SessionBusy while the
// session is busy.
func changeLog(ctx context.Context, g *gorm.DB, id core.SessionID, fn func(*sessionTx) error, conds ...condition) error {
	return changeLogWith(ctx, g, sessionLock{id: id, conds: conds}, fn)
}

// changeLogWith is to changeLog what changeSessionWith is to changeSession.
func changeLogWith(ctx context.Context, g *gorm.DB, l sessionLock, fn func(*sessionTx) error) error {
	if db.TurnsOf(g).IsHeld(l.id) {
		if err := checkNotBusy(ctx, g, l.id, l.conds...); err != nil {
			return err
		}
	}
	return changeSessionWith(ctx, g, l, func(stx *sessionTx) error {
		if stx.session.Busy != "" {
			return stx.sessionBusyError()
		}
		return fn(stx)
	})
}

// checkNotBusy returns the error of a busy session without locking it. Otherwise the
// writers of a session that this process imports into would take turns with the import.
func checkNotBusy(ctx context.Context, g *gorm.DB, id core.SessionID, conds ...condition) error {
	var row models.Session
	err := g.WithContext(ctx).Scopes(conds...).Where("sessions.id = ?", id).Take(&row).Error
	if err != nil || row.Busy == "" {
		return wrapError(err, "session", id)
	}
	return (&sessionTx{session: row}).sessionBusyError()
}

// inSessionTurn runs fn in a transaction when it is the caller's turn to write to the session.
// Another transaction that is in the way is waited for as long as a turn; fn begins anew then. So
// what is reported as busy has been busy for long.
func inSessionTurn(ctx context.Context, g *gorm.DB, id core.SessionID, fn func(tx *gorm.DB) error) error {
	if err := requireID("session", id); err != nil {
		return err
	}
	until := time.Now().Add(db.MaxTurnWait)
	release, err := db.TurnsOf(g).Take(ctx, id)
	if err != nil {
		return err
	}
	defer release()
	for {
		if err = inTx(ctx, g, fn); !isLockTimeout(err) || !time.Now().Before(until) {
			return err
		}
	}
}

// lockSession locks the session's row, busy or not, so that no other transaction adds to
// it.
func lockSession(tx *gorm.DB, id core.SessionID, conds ...condition) (*sessionTx, error) {
	return sessionLock{id: id, conds: conds}.acquire(tx)
}

// sessionLock is the lock of a session's row.
type sessionLock struct {
	id    core.SessionID
	conds []condition

	// with returns what is executed directly after the lock, on PostgreSQL in the same round trip, built by
	// dry runs; nil = nothing.
	with func(dry *gorm.DB) []*gorm.DB
}

// acquire is lockSession.
func (l sessionLock) acquire(tx *gorm.DB) (*sessionTx, error) {
	var row models.Session
	dry := tx.Session(&gorm.Session{DryRun: true})
	lock := dry.Scopes(l.conds...).Scopes(withRowLock("sessions", clause.LockingStrengthUpdate)).Where("sessions.id = ?", l.id).Take(&row)
	all := []*gorm.DB{lock}
	if l.with != nil {
		all = append(all, l.with(dry)...)
	}
	err := db.QueryBatch(tx, all...)
	if err == nil {
		err = lock.Error
	}
	if err != nil {
		return nil, wrapError(err, "session", l.id)
	}
	return &sessionTx{tx: tx, later: tx, session: row, changes: map[string]any{}}, nil
}

// withRowLock locks the selected rows of the table on PostgreSQL; it waits for lockTime.
func withRowLock(table, strength string) condition {
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
