package repositories

import (
	"context"
	"slices"
	"time"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Purges removes sessions and users for good. It is for operators: its methods
// take no scope. Safe for concurrent use; each method is one transaction for each
// session that it touches, so that one which was cut off is simply called again.
type Purges struct {
	db *gorm.DB
}

// NewPurges returns what removes from db.
func NewPurges(db *gorm.DB) *Purges { return &Purges{db: db} }

// What becomes of a table when a session goes, or a user. A test holds these lists
// against the schema: a new table has to be in one of them.

// sessionTables hold rows of one session each, in the order in which they can be
// deleted. search_entries takes the words of its index with it.
func sessionTables() []string {
	return []string{"search_entries", "tool_executions", "approvals", "session_events", "session_summaries", "messages", "deliveries", "runs"}
}

// otherTables are treated one by one: purge_user.go, purge_blobs.go,
// purge_answers.go, and the books, which stay without a name in them.
func otherTables() []string {
	return []string{"sessions", "memories", "blob_references", "blobs", "blob_contents", "idempotency_keys", "model_calls"}
}

// PurgedTables are the tables in which something of a user can be.
func PurgedTables() []string {
	return append([]string{"sessions"}, append(sessionTables(), otherTables()[1:]...)...)
}

// purgeChunk is how many ids are in one question.
const purgeChunk = 500

// Archived returns the sessions that were archived before the time, oldest first;
// of all owners if none is named.
func (r *Purges) Archived(ctx context.Context, owner string, before time.Time) ([]core.SessionID, error) {
	db := r.db.WithContext(ctx).Where("archived_at < ?", before.UTC())
	if owner != "" {
		db = db.Where("owner = ?", owner)
	}
	return sessionIDs(db)
}

// OfUser returns the sessions of the user.
func (r *Purges) OfUser(ctx context.Context, owner, user string) ([]core.SessionID, error) {
	return sessionIDs(r.db.WithContext(ctx).Where("owner = ? AND user_id = ?", owner, user))
}

func sessionIDs(db *gorm.DB) ([]core.SessionID, error) {
	var ids []core.SessionID
	err := db.Model(&models.Session{}).Order("created_at, id").Pluck("id", &ids).Error
	return ids, failure(err, "sessions", "to be purged")
}

// Exist returns ErrNotFound for the first id that is no session, of that owner if
// one is named.
func (r *Purges) Exist(ctx context.Context, owner string, ids []core.SessionID) error {
	for _, id := range ids {
		if err := known("session", id); err != nil {
			return err
		}
		db := r.db.WithContext(ctx).Model(&models.Session{}).Where("id = ?", id)
		if owner != "" {
			db = db.Where("owner = ?", owner)
		}
		var n int64
		err := db.Count(&n).Error
		if err == nil && n == 0 {
			err = gorm.ErrRecordNotFound
		}
		if err != nil {
			return failure(err, "session", id)
		}
	}
	return nil
}

// Unfinished returns the runs in the sessions that have not ended, the queued ones
// last.
func (r *Purges) Unfinished(ctx context.Context, ids []core.SessionID) ([]core.UnfinishedRun, error) {
	var all []core.UnfinishedRun
	for part := range slices.Chunk(ids, purgeChunk) {
		var rows []struct {
			ID, SessionID, Owner string
			Leased               bool
		}
		db := r.db.WithContext(ctx).Model(&models.Run{}).
			Select("id, session_id, owner, COALESCE(status = 'running' AND lease_until > "+clockSQL(r.db, 0)+", false) AS leased").
			Where("session_id IN ? AND status IN ('queued', 'running', 'waiting')", part).
			Order("status DESC, session_id, queue_seq DESC")
		if err := db.Find(&rows).Error; err != nil {
			return nil, failure(err, "runs", "that have not ended")
		}
		for _, row := range rows {
			all = append(all, core.UnfinishedRun{ID: core.RunID(row.ID), SessionID: core.SessionID(row.SessionID), Owner: row.Owner, Leased: row.Leased})
		}
	}
	return all, nil
}

// Session removes a session with everything that belongs to it; the books stay,
// without a name in them. ErrConflict while it has a run that has not ended, unless
// force says that nobody works on that any more.
func (r *Purges) Session(ctx context.Context, id core.SessionID, force bool) (core.Purged, error) {
	var gone core.Purged
	err := r.try(ctx, func(tx *gorm.DB) error {
		gone = core.Purged{}
		j, err := lockSession(tx, id)
		if err != nil {
			return err
		}
		if err := j.idle(); err != nil && !force {
			return err
		}
		return j.purge(&gone)
	})
	return gone, failure(err, "session", id)
}

// purge deletes the session. What refers to its rows goes first.
func (j *journal) purge(gone *core.Purged) error {
	id := j.session.ID
	if err := j.purgeBlobs(gone); err != nil {
		return err
	}
	books := j.tx.Model(&models.ModelCall{}).Where("session_id = ?", id).
		UpdateColumns(map[string]any{"session_id": nil, "run_id": nil, "user_id": ""})
	if books.Error != nil {
		return books.Error
	}
	gone.Empty("model_calls", books.RowsAffected)
	err := j.tx.Model(&models.Session{}).Where("id = ?", id).UpdateColumn("summary_through_id", nil).Error
	if err != nil {
		return err
	}
	for _, table := range sessionTables() {
		res := j.tx.Exec("DELETE FROM "+table+" WHERE session_id = ?", id)
		if res.Error != nil {
			return res.Error
		}
		gone.Remove(table, res.RowsAffected)
	}
	gone.Remove("sessions", 1)
	return j.tx.Where("id = ?", id).Delete(&models.Session{}).Error
}

// CountSessions counts what there is of the sessions, by table.
func (r *Purges) CountSessions(ctx context.Context, ids []core.SessionID) (core.Purged, error) {
	var there core.Purged
	db := r.db.WithContext(ctx)
	for part := range slices.Chunk(ids, purgeChunk) {
		for _, table := range append([]string{"sessions"}, sessionTables()...) {
			column := "session_id"
			if table == "sessions" {
				column = "id"
			}
			n, err := countRows(db, table, column+" IN ?", part)
			if err != nil {
				return there, err
			}
			there.Remove(table, n)
		}
		n, err := countRows(db, "model_calls", "session_id IN ?", part)
		if err != nil {
			return there, err
		}
		there.Empty("model_calls", n)
		for _, table := range []string{"blob_references", "blobs"} {
			if n, err = countRows(db, table, "session_id IN ?", part); err != nil {
				return there, err
			}
			there.Remove(table, n)
		}
	}
	return there, nil
}

func countRows(db *gorm.DB, table, where string, args ...any) (int64, error) {
	var n int64
	err := db.Table(table).Where(where, args...).Count(&n).Error
	return n, failure(err, "rows of", table)
}

// purgeTries is how often a transaction is begun that somebody else's stands against.
const purgeTries = 5

// try does fn in a transaction, again if another one was in the way: a message that
// came to refer to a file which was about to go, or each waits for the other.
func (r *Purges) try(ctx context.Context, fn func(tx *gorm.DB) error) (err error) {
	for range purgeTries {
		if err = inTx(ctx, r.db, fn); err == nil || !isCollision(err) {
			return err
		}
	}
	return err
}
