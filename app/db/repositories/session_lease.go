package repositories

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Work on many rows of a session runs in steps: short transactions that do not delay
// others. Meanwhile the session is busy, by a lease that each step renews.
//
// A message is in the log if its seq is at most the session's last_seq. An import writes
// beyond that, and its last step moves last_seq. The copy that a fork writes, and a session
// that is being removed, are hidden. Purges.Recover removes what a process that dies
// meanwhile leaves behind.

// The reasons for a busy session.
const (
	busyImport = "import" // messages beyond last_seq are being written
	busyFork   = "fork"   // the session is a copy that is not complete
	busyPurge  = "purge"  // the session is being removed
)

// visibleSQL is the condition for sessions that are not hidden.
const visibleSQL = "sessions.busy NOT IN ('" + busyFork + "', '" + busyPurge + "')"

// stepTime bounds a step, which usually takes some ten milliseconds.
const stepTime = 15 * time.Second

// stepContext bounds a transaction that continues when its caller goes away: otherwise its
// outcome would be unknown.
func stepContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), stepTime)
}

// sessionBusyError is the error for requests to a busy session.
func (stx *sessionTx) sessionBusyError() error {
	why := map[string]string{
		busyImport: "a history is being imported into it", busyFork: "it is a fork that is not complete", busyPurge: "it is being removed",
	}[stx.session.Busy]
	return core.SessionBusy(stx.session.ID, why)
}

// sessionLease is the right to change a session in steps.
type sessionLease struct {
	db    *gorm.DB
	id    core.SessionID
	owner string
}

// acquireLease makes the session busy. Each step renews the lease for core.RunLease.
func (stx *sessionTx) acquireLease(db *gorm.DB, busy, worker string) (*sessionLease, error) {
	lease := &sessionLease{db: db, id: stx.session.ID, owner: worker + "/" + core.NewID[string]()}
	stx.session.Busy, stx.session.BusyOwner = busy, lease.owner
	stx.clocks["busy_until"] = gorm.Expr(clockSQL(db, core.RunLease))
	return lease, stx.saveChanges()
}

// runStep runs fn in a transaction that renews the lease. The end of ctx does not interrupt
// it, but prevents the next one. ErrStale when the lease was lost.
func (lease *sessionLease) runStep(ctx context.Context, fn func(*sessionTx) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	ctx, cancel := stepContext(ctx)
	defer cancel()
	return inSessionTurn(ctx, lease.db, lease.id, func(tx *gorm.DB) error {
		stx, err := lease.lockLeased(tx)
		if err == nil {
			err = tx.Model(&models.Session{}).Where("id = ?", lease.id).UpdateColumn("busy_until", gorm.Expr(clockSQL(tx, core.RunLease))).Error
		}
		if err == nil {
			err = fn(stx)
		}
		return err
	})
}

// runStepWith is runStep with another session locked as well. Lock order: the other session
// first.
func (lease *sessionLease) runStepWith(ctx context.Context, id core.SessionID, fn func(other, own *sessionTx) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	ctx, cancel := stepContext(ctx)
	defer cancel()
	_, err := changeSession(ctx, lease.db, id, func(other *sessionTx) error {
		own, err := lease.lockLeased(other.tx)
		if err == nil {
			err = fn(other, own)
		}
		return err
	})
	return err
}

// lockLeased locks the session if the lease has not expired.
func (lease *sessionLease) lockLeased(tx *gorm.DB) (*sessionTx, error) {
	stx, err := lockSession(tx, lease.id, gorm.Expr("busy_owner = ? AND busy_until > "+clockSQL(tx, 0), lease.owner))
	if isNotFound(err) {
		err = core.Errorf(core.ErrStale, "the work on session %s took too long, or another process has taken it over; try again", lease.id)
	}
	return stx, err
}

// clearBusy makes the session available again.
func (stx *sessionTx) clearBusy() {
	stx.session.Busy, stx.session.BusyOwner = "", ""
	stx.clocks["busy_until"] = nil
}

// endLease ends the lease after a failure, so that the partial work can be removed
// immediately. It ignores errors: the lease expires by itself.
func (lease *sessionLease) endLease(ctx context.Context) {
	ctx, cancel := stepContext(ctx)
	defer cancel()
	lease.db.WithContext(ctx).Model(&models.Session{}).Where("id = ? AND busy_owner = ?", lease.id, lease.owner).
		UpdateColumn("busy_until", gorm.Expr(clockSQL(lease.db, 0)))
}

// stepRows is how many rows a step takes: enough that the overhead of transactions does not dominate, and
// few enough that it takes some ten milliseconds.
const stepRows = 128

// runSteps runs fn in steps: it handles up to limit rows and returns how many there were,
// until there are fewer.
func (lease *sessionLease) runSteps(ctx context.Context, fn func(stx *sessionTx, limit int) (int64, error)) error {
	for {
		var n int64
		err := lease.runStep(ctx, func(stx *sessionTx) (err error) {
			n, err = fn(stx, stepRows)
			return err
		})
		if err != nil || n < stepRows {
			return err
		}
	}
}

// deleteAll deletes the rows of a table in steps, by a condition with @s, the session.
func (lease *sessionLease) deleteAll(ctx context.Context, table, where string) error {
	if table == "messages" { // a parent has a smaller seq than its children
		where += " ORDER BY seq DESC"
	}
	return lease.runSteps(ctx, func(stx *sessionTx, limit int) (int64, error) {
		row, in := "rowid", "IN (%s)"
		if isPostgres(stx.tx) {
			row, in = "ctid", "= ANY(ARRAY(%s))" // IN would read the whole table
		}
		rows := "SELECT " + row + " FROM " + table + " WHERE " + where + " LIMIT @limit"
		res := stx.tx.Exec("DELETE FROM "+table+" WHERE "+row+" "+fmt.Sprintf(in, rows), map[string]any{"s": stx.session.ID, "limit": limit})
		return res.RowsAffected, res.Error
	})
}

// Abandoned returns up to limit busy sessions without a live process: their lease has
// expired, or an earlier process of the worker's replica held it.
func (r *Purges) Abandoned(ctx context.Context, worker string, limit int) ([]core.SessionID, error) {
	db := r.db.WithContext(ctx)
	ids, err := scan[[]core.SessionID](db.Model(&models.Session{}).Where(abandonedSessions(db, worker)).Order("id").Limit(limit).Select("id"))
	return ids, wrapError(err, "sessions", "busy")
}

// abandonedSessions is the condition for Abandoned.
func abandonedSessions(db *gorm.DB, worker string) clause.Expr {
	own, former := worker+"/", core.WorkersOf(worker)
	return gorm.Expr("busy <> '' AND (busy_until <= "+clockSQL(db, 0)+" OR substr(busy_owner, 1, ?) = ? AND substr(busy_owner, 1, ?) <> ?)",
		len(former), former, len(own), own)
}

// Recover removes what was left behind in an abandoned session: the messages that an import
// wrote, or the whole session if it was an incomplete fork or was being removed, as Session does. It works
// in steps and may be called again. A session that is not abandoned stays as it is.
func (r *Purges) Recover(ctx context.Context, id core.SessionID, worker string) ([]core.Event, error) {
	var lease *sessionLease
	busy := ""
	err := inSessionTurn(ctx, r.db, id, func(tx *gorm.DB) error {
		stx, err := lockSession(tx, id, abandonedSessions(tx, worker))
		if err != nil {
			return err
		}
		if busy = stx.session.Busy; busy == busyImport {
			lease, err = stx.acquireLease(r.db, busy, worker)
		} else {
			lease, err = stx.beginPurge(r.db)
		}
		return err
	})
	switch {
	case isNotFound(err):
		return nil, nil
	case err != nil:
		return nil, wrapError(err, "session", id)
	case busy == busyImport:
		return nil, wrapError(lease.dropImport(ctx), "session", id)
	}
	return lease.purgeSession(ctx)
}

// beyondLogSQL is the condition for messages of a session that are not in its log.
const beyondLogSQL = "session_id = @s AND seq > (SELECT last_seq FROM sessions WHERE id = @s)"

// dropImport removes the messages that are not in the log, with their entries in the search
// index.
func (lease *sessionLease) dropImport(ctx context.Context) error {
	err := lease.runSteps(ctx, func(stx *sessionTx, limit int) (int64, error) {
		messages, err := scan[[]core.MessageID](stx.tx.Raw("SELECT DISTINCT message_id FROM blob_references WHERE session_id = @s AND message_id IN (SELECT id FROM messages WHERE "+beyondLogSQL+") LIMIT @limit",
			map[string]any{"s": lease.id, "limit": limit}))
		if err == nil && len(messages) > 0 {
			err = stx.releaseFiles(messages)
		}
		return int64(len(messages)), err
	})
	if err != nil {
		return err
	}
	if err := lease.deleteAll(ctx, "messages", beyondLogSQL); err != nil {
		return err
	}
	return lease.runStep(ctx, func(stx *sessionTx) error {
		stx.clearBusy()
		return stx.saveChanges()
	})
}
