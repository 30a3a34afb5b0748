package repositories

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"
	sqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/commit"
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
	case postgresCode(err) == outOfRange:
		return &core.Error{Kind: core.ErrInvalid, Err: err, Message: "a number in the JSON is too large or too precise to be stored; send it as a string"}
	case strings.HasPrefix(postgresCode(err), "22"): // a data exception
		return &core.Error{Kind: core.ErrInvalid, Err: err, Message: models.UnstorableMessage}
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

// outOfRange is PostgreSQL's code for numbers that do not fit a numeric.
const outOfRange = "22003"

// isBusy reports whether SQLite gave up waiting for another writer.
func isBusy(err error) bool {
	var lite *sqlite.Error
	return errors.As(err, &lite) && lite.Code()&0xff == sqlite3.SQLITE_BUSY
}

// PostgreSQL's codes for a deadlock and for a lock timeout.
const (
	deadlock         = "40P01"
	lockNotAvailable = "55P03"
)

// postgresCode returns the code of an error of PostgreSQL; empty for others.
func postgresCode(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code
	}
	return ""
}

// isLockTimeout reports whether PostgreSQL gave up waiting for another transaction.
func isLockTimeout(err error) bool { return postgresCode(err) == lockNotAvailable }

// inTx runs fn in a transaction that is committed when fn returns nil. If ctx ends before, the error is
// that of ctx, as for a statement.
func inTx(ctx context.Context, g *gorm.DB, fn func(tx *gorm.DB) error) error {
	err := g.WithContext(ctx).Transaction(fn)
	var lite *sqlite.Error // rolled back before its COMMIT, or interrupted
	if end := ctx.Err(); end != nil && (errors.Is(err, sql.ErrTxDone) || errors.As(err, &lite) && lite.Code() == sqlite3.SQLITE_INTERRUPT) {
		err = db.Translate(fmt.Errorf("%w: %s", end, err)) //nolint:errorlint // the code of SQLite would hide it
	}
	return err
}

// txTries bounds the attempts at a transaction that collides with others.
const txTries = 5

// retryTx runs fn, a transaction, and retries it after a collision (a message came to refer to a file that was about to be removed,
// or two transactions waited for each other), and while another writer is in the way, for as long as a writer waits for a session.
func retryTx(fn func() error) error {
	until := time.Now().Add(commit.MaxTurnWait)
	for tries := 1; ; tries++ {
		err := fn()
		collided := postgresCode(err) == deadlock || errors.Is(err, gorm.ErrForeignKeyViolated) // with one that has ended since
		if again := collided && tries < txTries || (isBusy(err) || isLockTimeout(err)) && time.Now().Before(until); !again {
			return err
		}
	}
}
