package repositories

import (
	"context"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

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
