package repositories

import (
	"context"
	"errors"
	"slices"
	"time"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Purges finds and removes sessions, users and expired data permanently, and finds what an export of a
// user needs. Its methods are for operators and workers and take no
// scope. Safe for concurrent use, by many processes; an interrupted method is simply called again.
type Purges struct{ db *gorm.DB }

// NewPurges returns the purges of db.
func NewPurges(db *gorm.DB) *Purges { return &Purges{db: db} }

// What happens to each table when a session or a user is removed. A test compares these
// lists with the schema: a new table has to be in one of them.

// sessionTables hold rows of one session each, in an order in which they can be deleted.
// Deleting from search_entries removes the words from its index as well.
func sessionTables() []string {
	return []string{"search_entries", "session_readers", "tool_executions", "approvals", "session_events", "session_summaries", "message_revisions", "message_vectors", "standing_instructions", "prompt_setups", "messages", "deliveries", "runs", "session_aliases", "slack_inbox", "slack_threads", "slack_posts"}
}

// PurgedTables are the tables that can contain data of a user.
func PurgedTables() []string {
	return append(append([]string{"sessions"}, sessionTables()...),
		// These need special treatment: see below and purge_user.go. Usage records stay without the user's name.
		"memories", "blob_references", "blobs", "blob_texts", "blob_contents", "blob_totals", "idempotency_keys", "idempotency_mentions", "model_calls", "usage_days",
		"deletions") // Deletions.Finish clears the user
}

// Archived returns the sessions that were archived before the time, oldest first; of all
// owners if none is named.
func (r *Purges) Archived(ctx context.Context, owner string, before time.Time) ([]core.SessionID, error) {
	db := r.db.WithContext(ctx).Where("archived_at < ?", before.UTC())
	if owner != "" {
		db = db.Where("owner = ?", owner)
	}
	return sessionIDs(db)
}

// OfUser returns the sessions of the user.
func (r *Purges) OfUser(ctx context.Context, owner, user string) ([]core.SessionID, error) {
	return sessionIDs(r.db.WithContext(ctx).Where("id IN ("+userSessionsSQL+")", userParams(owner, user)))
}

func sessionIDs(db *gorm.DB) ([]core.SessionID, error) {
	ids, err := scan[[]core.SessionID](db.Model(&models.Session{}).Order("created_at, id").Select("id"))
	return ids, wrapError(err, "sessions", "to be purged")
}

// Exist returns ErrNotFound for the first id without a session, of that owner if one is
// named.
func (r *Purges) Exist(ctx context.Context, owner string, ids []core.SessionID) error {
	for _, id := range ids {
		db := byID(ctx, r.db, "session", id).Select("id").Where("id = ?", id)
		if owner != "" {
			db = db.Where("owner = ?", owner)
		}
		if _, err := takeRow[models.Session](db, "session", id); err != nil {
			return err
		}
	}
	return nil
}

// Unfinished returns the unfinished runs in the sessions, queued ones last.
func (r *Purges) Unfinished(ctx context.Context, ids []core.SessionID) ([]core.UnfinishedRun, error) {
	var all []core.UnfinishedRun
	for part := range slices.Chunk(ids, maxIDs) {
		var rows []core.UnfinishedRun
		db := r.db.WithContext(ctx).Model(&models.Run{}).
			Select("id, session_id, owner, COALESCE(status = 'running' AND lease_until > "+clockSQL(r.db, 0)+", false) AS leased").
			Where("session_id IN ? AND status IN ('queued', 'running', 'waiting')", part).
			Order("status DESC, session_id, queue_seq DESC")
		if err := db.Find(&rows).Error; err != nil {
			return nil, wrapError(err, "runs", "that have not ended")
		}
		all = append(all, rows...)
	}
	return all, nil
}

// Session removes a session with everything that belongs to it; usage records stay, without
// names. It works in steps: after the first one the session is hidden, and Recover removes
// what a process that dies meanwhile leaves behind.
//
// ErrConflict while the session has an unfinished run or is busy, unless force says to
// ignore that. A removal in progress is always a conflict.
func (r *Purges) Session(ctx context.Context, id core.SessionID, force bool) (core.Purged, error) {
	var lease *sessionLease
	var owner core.EventOwner
	err := inSessionTurn(ctx, r.db, id, func(tx *gorm.DB) error {
		stx, err := lockSession(tx, id)
		if err != nil {
			return err
		}
		owner = core.EventOwner{Owner: stx.session.Owner, User: stx.session.UserID}
		var held int64
		err = tx.Model(&models.Session{}).Where("id = ? AND busy <> '' AND busy_until > "+clockSQL(tx, 0), id).Count(&held).Error
		if err == nil && held > 0 && (!force || stx.session.Busy == busyPurge) {
			err = stx.sessionBusyError()
		}
		if err == nil && !force {
			err = stx.checkIdle()
		}
		if err == nil {
			lease, err = stx.beginPurge(r.db)
		}
		return err
	})
	if err != nil {
		return core.Purged{}, wrapError(err, "session", id)
	}
	gone, err := lease.purgeSession(ctx)
	gone.Owner = owner
	return gone, err
}

// beginPurge hides the session, so that nothing of it is indexed any more.
func (stx *sessionTx) beginPurge(db *gorm.DB) (*sessionLease, error) {
	if _, err := stx.lockIndex(); err != nil && !errors.Is(err, gorm.ErrRecordNotFound) { // a removal that broke off may have deleted that row
		return nil, err
	}
	err := stx.tx.Model(&models.Session{}).Where("id = ?", stx.session.ID).UpdateColumns(map[string]any{
		"last_seq": 0, "message_count": 0, "conversation_summary": nil, "native_summary": nil, "summary_through_id": nil,
	}).Error
	if err != nil {
		return nil, err
	}
	return stx.acquireLease(db, busyPurge, "")
}

// purgeSession deletes the session, and first the rows that refer to it.
func (lease *sessionLease) purgeSession(ctx context.Context) (core.Purged, error) {
	var gone core.Purged
	err := lease.purgeBlobs(ctx, &gone)
	if err == nil {
		err = lease.purgeUsage(ctx, &gone)
	}
	for _, table := range sessionTables() {
		where := "session_id = @s"
		if table == "tool_executions" { // has no index by session
			where = "run_id IN (SELECT id FROM runs WHERE session_id = @s)"
		}
		if err == nil {
			err = lease.deleteAll(ctx, table, where, &gone)
		}
	}
	if err == nil {
		err = lease.runStep(ctx, func(stx *sessionTx) error {
			return stx.tx.Where("id = ?", lease.id).Delete(&models.Session{}).Error
		})
	}
	if err != nil {
		lease.endLease(ctx)
		return gone, wrapError(err, "session", lease.id)
	}
	gone.Remove("sessions", 1)
	return gone, nil
}

// purgeUsage removes the session and the names of its users from the usage records.
func (lease *sessionLease) purgeUsage(ctx context.Context, gone *core.Purged) error {
	return lease.runSteps(ctx, gone, func(stx *sessionTx, limit int, gone *core.Purged) (int64, error) {
		calls, err := findRows[core.ModelCall](stx.tx.Scopes(callsLocked).Where("session_id = ?", stx.session.ID).Limit(limit))
		if err == nil {
			_, err = forgetUsage(stx.tx, calls, true)
		}
		gone.Empty("model_calls", int64(len(calls)))
		return int64(len(calls)), err
	})
}

// CountSessions counts the rows of the sessions by table.
func (r *Purges) CountSessions(ctx context.Context, ids []core.SessionID) (core.Purged, error) {
	var there core.Purged
	db := r.db.WithContext(ctx)
	for part := range slices.Chunk(ids, maxIDs) {
		for _, table := range append([]string{"sessions", "model_calls", "blob_references", "blobs"}, sessionTables()...) {
			column := "session_id"
			if table == "sessions" {
				column = "id"
			}
			n, err := countRows(db, table, column+" IN ?", part)
			if err != nil {
				return there, err
			}
			if table == "model_calls" {
				there.Empty(table, n)
			} else {
				there.Remove(table, n)
			}
		}
	}
	return there, nil
}

func countRows(db *gorm.DB, table, where string, args ...any) (int64, error) {
	n, err := count(db.Table(table).Where(where, args...))
	return n, wrapError(err, "rows of", table)
}

// purgeParts runs fn for parts of the ids of the query, each in a transaction that is retried like retryDelays. Gone
// collects what they removed.
func purgeParts[T any](ctx context.Context, g, which *gorm.DB, gone *core.Purged, fn func(tx *gorm.DB, part []T, gone *core.Purged) error) error {
	ids, err := scan[[]T](which.Select("id"))
	for part := range slices.Chunk(ids, stepRows) {
		var removed core.Purged
		if err == nil {
			err = retryDelays(func() error {
				return inTx(ctx, g, func(tx *gorm.DB) error {
					removed = core.Purged{}
					return fn(tx, part, &removed)
				})
			})
		}
		if err == nil {
			gone.Add(removed)
		}
	}
	return err
}

// purgeBlobs removes the blobs that the session's messages refer to, or that were uploaded
// for it. Those that another session refers to stay, without a session.
func (lease *sessionLease) purgeBlobs(ctx context.Context, gone *core.Purged) error {
	return lease.runSteps(ctx, gone, func(stx *sessionTx, limit int, gone *core.Purged) (int64, error) {
		blobs, err := scan[[]models.Ref](stx.tx.Raw("SELECT blob_id FROM blob_references WHERE session_id = @s UNION SELECT id FROM blobs WHERE session_id = @s LIMIT @limit", map[string]any{"s": lease.id, "limit": limit}))
		if err != nil || len(blobs) == 0 {
			return 0, err
		}
		res := stx.tx.Where("session_id = ? AND blob_id IN ?", lease.id, blobs).Delete(&models.BlobReference{})
		if res.Error != nil {
			return 0, res.Error
		}
		gone.Remove("blob_references", res.RowsAffected)
		err = stx.tx.Model(&models.Blob{}).Where("session_id = ? AND id IN ?", lease.id, blobs).UpdateColumn("session_id", nil).Error
		if err != nil {
			return 0, err
		}
		return int64(len(blobs)), removeAndCountBlobs(stx.tx, stx.session.Owner, blobs, gone)
	})
}

// removeAndCountBlobs removes those of the blobs without references, and counts them.
func removeAndCountBlobs(tx *gorm.DB, owner string, blobs []models.Ref, gone *core.Purged) error {
	swept, err := removeBlobs(tx, owner, blobs)
	gone.Remove("blobs", int64(swept.Blobs))
	gone.Remove("blob_contents", int64(swept.Contents))
	return err
}

// Answers removes the stored answers that mention one of the sessions, or the user of the owner if one is named; with dry
// it only counts them.
func (r *Purges) Answers(ctx context.Context, owner, user string, sessions []core.SessionID, dry bool) (int64, error) {
	mentions := idsOf(sessions, func(id core.SessionID) string { return string(id) })
	if user != "" {
		mentions = append(mentions, mentionOfUser(user))
	}
	found := map[models.IdempotencyMention]bool{}
	var removed int64
	for part := range slices.Chunk(mentions, maxIDs) {
		db := r.db.WithContext(ctx)
		which := db.Model(&models.IdempotencyMention{}).Select("owner, key").Where("mention IN ?", part)
		if owner != "" {
			which = which.Where("owner = ?", owner)
		}
		// A request without an answer or a result checks what still exists when it stores
		// them.
		kept := db.Where("(status IS NOT NULL OR result <> '') AND (owner, key) IN (?)", which)
		if !dry {
			res := kept.Delete(&models.IdempotencyKey{})
			if res.Error != nil {
				return removed, wrapError(res.Error, "idempotency keys of", owner)
			}
			removed += res.RowsAffected
			continue
		}
		var keys []models.IdempotencyKey
		if err := kept.Select("owner", "key").Find(&keys).Error; err != nil {
			return 0, wrapError(err, "idempotency keys of", owner)
		}
		for _, k := range keys {
			found[models.IdempotencyMention{Owner: k.Owner, Key: k.Key}] = true
		}
	}
	return removed + int64(len(found)), nil
}
