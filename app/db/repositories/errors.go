package repositories

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"
	sqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/models"
)

// wrapError translates the error of an operation on the named thing into an error of core.
// A core.Error stays as it is.
func wrapError[T ~string](err error, what string, id T) error {
	err = db.Translate(err) // gorm translates its own errors only
	var known *core.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, core.ErrNoDatabase):
		return fmt.Errorf("%s %s: %w", what, id, err)
	case errors.As(err, &known):
		return err
	case errors.Is(err, gorm.ErrRecordNotFound):
		return notFound(what, id)
	case errors.Is(err, gorm.ErrDuplicatedKey):
		return &core.Error{Kind: core.ErrConflict, Err: err,
			Message: fmt.Sprintf("%s %s: this id already exists", what, id)}
	case errors.Is(err, gorm.ErrForeignKeyViolated):
		return &core.Error{Kind: core.ErrConflict, Err: err,
			Message: fmt.Sprintf("%s %s refers to something that does not exist", what, id)}
	case isUnstorable(err):
		return &core.Error{Kind: core.ErrInvalid, Err: err, Message: unstorableReason(err)}
	case isLockTimeout(err):
		busy := core.SessionBusy(core.SessionID(id), "another transaction writes to it")
		busy.Message, busy.Err = fmt.Sprintf("another request is writing to %s %s; try again in a moment", what, id), err
		return busy
	case isBusy(err):
		return &core.Error{Kind: core.ErrUnavailable, Err: err,
			Message: "the database is busy; try again in a moment"}
	}
	return fmt.Errorf("%s %s: %w", what, id, err)
}

func notFound[T ~string](what string, id T) error {
	return core.Errorf(core.ErrNotFound, "%s %s does not exist", what, id)
}

// isUnstorable reports whether PostgreSQL rejected a value: class 22, "data exception".
func isUnstorable(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && strings.HasPrefix(pg.Code, "22")
}

// unstorableReason says why PostgreSQL rejected a value.
func unstorableReason(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == outOfRange {
		return "a number in the JSON is too large or too precise to be stored; send it as a string"
	}
	return models.UnstorableMessage
}

// outOfRange is PostgreSQL's code for numbers that do not fit a numeric.
const outOfRange = "22003"

// insertRows inserts the rows, a pointer to a row or to a slice of rows, in one statement. An empty slice
// needs no statement.
func insertRows(tx *gorm.DB, rows any) error {
	if v := reflect.Indirect(reflect.ValueOf(rows)); v.Kind() == reflect.Slice && v.Len() == 0 {
		return nil
	}
	return tx.Create(rows).Error
}

// isBusy reports whether SQLite gave up waiting for another writer.
func isBusy(err error) bool {
	var lite *sqlite.Error
	return errors.As(err, &lite) && lite.Code()&0xff == sqlite3.SQLITE_BUSY
}

// isLockTimeout reports whether PostgreSQL gave up waiting for another transaction.
func isLockTimeout(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == lockNotAvailable
}

// isCollision reports whether a transaction failed because of another one that has ended
// since. It can be retried immediately.
func isCollision(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == deadlock || errors.Is(err, gorm.ErrForeignKeyViolated)
}

// PostgreSQL's codes for a deadlock and for a lock timeout.
const (
	deadlock         = "40P01"
	lockNotAvailable = "55P03"
)

// inTx runs fn in a transaction that is committed when fn returns nil. If ctx ends before, the error is
// that of ctx, as for a statement.
func inTx(ctx context.Context, g *gorm.DB, fn func(tx *gorm.DB) error) error {
	err := g.WithContext(ctx).Transaction(fn)
	if end := ctx.Err(); end != nil && isCutOff(err) {
		err = db.Translate(fmt.Errorf("%w: %s", end, err)) //nolint:errorlint // the code of SQLite would hide it
	}
	return err
}

// isCutOff reports whether a transaction was rolled back before its COMMIT, or SQLite interrupted.
func isCutOff(err error) bool {
	var lite *sqlite.Error
	return errors.Is(err, sql.ErrTxDone) || errors.As(err, &lite) && lite.Code() == sqlite3.SQLITE_INTERRUPT
}

// txTries bounds the attempts at a transaction that collides with others.
const txTries = 5

// retryCollisions runs fn, a transaction, and retries it after a collision: a message came
// to refer to a file that was about to be removed, or two transactions waited for each
// other.
func retryCollisions(fn func() error) error { return retryTx(isCollision, fn) }

// retryDelays is retryCollisions for background work. It also retries when other writers
// took too long.
func retryDelays(fn func() error) error {
	return retryTx(func(err error) bool { return isCollision(err) || isBusy(err) || isLockTimeout(err) }, fn)
}

// retryTx runs fn, a transaction, and retries it while the error is temporary.
func retryTx(temporary func(error) bool, fn func() error) (err error) {
	for range txTries {
		if err = fn(); err == nil || !temporary(err) {
			return err
		}
	}
	return err
}
