package repositories

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"
	sqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"bobbin/app/core"
	"bobbin/app/db"
)

// failure says in core's words why something with the thing of that id went
// wrong. A core.Error stays as it is.
func failure[T ~string](err error, what string, id T) error {
	err = db.Translate(err) // of what did not come through gorm
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
			Message: fmt.Sprintf("%s %s: something with this id exists already", what, id)}
	case errors.Is(err, gorm.ErrForeignKeyViolated):
		return &core.Error{Kind: core.ErrConflict, Err: err,
			Message: fmt.Sprintf("%s %s refers to something that does not exist", what, id)}
	case isUnstorable(err):
		return &core.Error{Kind: core.ErrInvalid, Err: err, Message: unstorable}
	case isBusy(err):
		return &core.Error{Kind: core.ErrUnavailable, Err: err,
			Message: "the database is busy; try again in a moment"}
	}
	return fmt.Errorf("%s %s: %w", what, id, err)
}

func notFound[T ~string](what string, id T) error {
	return core.Errorf(core.ErrNotFound, "%s %s does not exist", what, id)
}

// isUnstorable reports whether PostgreSQL could not take a value as it is: class
// 22, "data exception".
func isUnstorable(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && strings.HasPrefix(pg.Code, "22")
}

// isBusy reports whether SQLite gave up waiting for another writer.
func isBusy(err error) bool {
	var lite *sqlite.Error
	return errors.As(err, &lite) && lite.Code()&0xff == sqlite3.SQLITE_BUSY
}

// isCollision reports whether a transaction failed because of another one, so that
// it may be done again.
func isCollision(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == deadlock || errors.Is(err, gorm.ErrForeignKeyViolated) || isBusy(err)
}

// deadlock is PostgreSQL's code for transactions that wait for each other.
const deadlock = "40P01"

// inTx runs fn in a transaction that is committed when fn returns nil.
func inTx(ctx context.Context, db *gorm.DB, fn func(tx *gorm.DB) error) error {
	return db.WithContext(ctx).Transaction(fn)
}
