package repositories

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// CheckFree returns ErrConflict while one of the sessions is imported into, forked or removed.
func (r *Purges) CheckFree(ctx context.Context, ids []core.SessionID) error {
	for part := range slices.Chunk(ids, maxIDs) {
		busy, err := findRows[models.Session](r.db.WithContext(ctx).Where("id IN ? AND busy <> '' AND busy_until > "+clockSQL(r.db, 0), part).Limit(1))
		if err == nil && len(busy) > 0 {
			err = (&sessionTx{session: busy[0]}).sessionBusyError()
		}
		if err != nil {
			return wrapError(err, "sessions", "busy")
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
// what a process that dies meanwhile leaves behind. It returns the events to publish, also with
// an error if the session is gone.
//
// ErrConflict while the session has an unfinished run or is busy, unless force says to
// ignore that. A removal in progress is always a conflict.
func (r *Purges) Session(ctx context.Context, id core.SessionID, force bool) ([]core.Event, error) {
	var lease *sessionLease
	err := inSessionTurn(ctx, r.db, id, func(tx *gorm.DB) error {
		stx, err := lockSession(tx, id)
		if err != nil {
			return err
		}
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
		return nil, wrapError(err, "session", id)
	}
	return lease.purgeSession(ctx)
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

// purgeSession deletes the session, first the rows that refer to it, and at last the stored answers: by then requests in
// progress have stored theirs.
func (lease *sessionLease) purgeSession(ctx context.Context) ([]core.Event, error) {
	err := lease.purgeBlobs(ctx)
	if err == nil {
		err = lease.runSteps(ctx, func(stx *sessionTx, limit int) (int64, error) { // the names leave the usage records
			calls, err := findRows[core.ModelCall](stx.tx.Scopes(callsLocked).Where("session_id = ?", stx.session.ID).Limit(limit))
			if err == nil {
				err = forgetUsage(stx.tx, calls, true)
			}
			return int64(len(calls)), err
		})
	}
	for _, table := range sessionTables() {
		where := "session_id = @s"
		if table == "tool_executions" { // has no index by session
			where = "run_id IN (SELECT id FROM runs WHERE session_id = @s)"
		}
		if err == nil {
			err = lease.deleteAll(ctx, table, where)
		}
	}
	gone := core.NewEvent(lease.id, "", core.EventResync, nil)
	if err == nil {
		err = lease.runStep(ctx, func(stx *sessionTx) error {
			gone.Owner = core.EventOwner{Owner: stx.session.Owner, User: stx.session.UserID}
			return stx.tx.Where("id = ?", lease.id).Delete(&models.Session{}).Error
		})
	}
	if err != nil {
		lease.endLease(ctx)
		return nil, wrapError(err, "session", lease.id)
	}
	_, err = NewPurges(lease.db).Answers(ctx, "", "", []core.SessionID{lease.id}, false)
	return []core.Event{gone}, err
}

// purgedRows returns the conditions for the rows that a purge of @sessions removes and for those that it empties, by table;
// with a user also for those of @user of @owner.
func purgedRows(user bool) (removed, emptied map[string]string) {
	either := func(ofSessions, ofUser string) string {
		if !user {
			return ofSessions
		}
		return ofSessions + " OR " + ofUser
	}
	const inSessions, ofUser = "session_id IN @sessions", "owner = @owner AND user_id = @user"
	blobs := "SELECT id FROM blobs WHERE " + either("("+inSessions+" OR id IN (SELECT blob_id FROM blob_references WHERE "+inSessions+"))"+
		" AND NOT EXISTS (SELECT 1 FROM blob_references r WHERE r.blob_id = blobs.id AND r.session_id NOT IN @sessions)", ofUser)
	removed = map[string]string{
		"sessions":        "id IN @sessions",
		"blobs":           "id IN (" + blobs + ")",
		"blob_references": either(inSessions, "blob_id IN (SELECT id FROM blobs WHERE "+ofUser+")"),
		"blob_contents": "(owner, sha256) IN (SELECT owner, sha256 FROM blobs WHERE id IN (" + blobs + ")) AND NOT EXISTS" +
			" (SELECT 1 FROM blobs b WHERE b.owner = blob_contents.owner AND b.sha256 = blob_contents.sha256 AND b.id NOT IN (" + blobs + "))",
	}
	for _, table := range sessionTables() {
		removed[table] = inSessions
	}
	emptied = map[string]string{"model_calls": either(inSessions, ofUser)}
	if user {
		removed["memories"], removed["slack_inbox"] = ofUser, either(inSessions, ofUser)
		removed["deliveries"] = either(inSessions, "run_id IN (SELECT id FROM runs WHERE "+userRunsSQL+")")
		emptied["messages"], emptied["runs"] = userMessagesSQL, userRunsSQL
		emptied["usage_days"], emptied["blob_totals"] = "level IN ('user', 'user_session') AND "+ofUser, "by_user AND "+ofUser
	}
	return removed, emptied
}

// Count counts the rows that a purge of the sessions, and of the user if one is named, removes and empties, in all tables.
func (r *Purges) Count(ctx context.Context, owner, user string, ids []core.SessionID) ([]core.PurgedTable, error) {
	parts := slices.Collect(slices.Chunk(ids, maxIDs))
	if len(parts) == 0 {
		parts = [][]core.SessionID{nil}
	}
	var lines []core.PurgedTable
	for _, table := range PurgedTables() {
		line := core.PurgedTable{Table: table}
		for i, part := range parts {
			args := map[string]any{"sessions": part, "owner": owner, "user": user}
			removed, emptied := purgedRows(user != "" && i == 0)
			for rows, where := range map[*int64]string{&line.Removed: removed[table], &line.Emptied: emptied[table]} {
				if where == "" {
					continue
				}
				n, err := count(r.db.WithContext(ctx).Table(table).Where(where, args))
				if err != nil {
					return nil, wrapError(err, "rows of", table)
				}
				*rows += n
			}
		}
		lines = append(lines, line)
	}
	answers, err := r.Answers(ctx, owner, user, ids, true)
	lines[slices.IndexFunc(lines, func(l core.PurgedTable) bool { return l.Table == "idempotency_keys" })].Removed = answers
	return lines, err
}

// purgeParts runs fn for parts of the ids of the query, each in a transaction that is retried like retryTx.
func purgeParts[T any](ctx context.Context, g, which *gorm.DB, fn func(tx *gorm.DB, part []T) error) error {
	ids, err := scan[[]T](which.Select("id"))
	for part := range slices.Chunk(ids, stepRows) {
		if err == nil {
			err = retryTx(func() error {
				return inTx(ctx, g, func(tx *gorm.DB) error { return fn(tx, part) })
			})
		}
	}
	return err
}

// purgeBlobs removes the blobs that the session's messages refer to, or that were uploaded
// for it. Those that another session refers to stay, without a session.
func (lease *sessionLease) purgeBlobs(ctx context.Context) error {
	return lease.runSteps(ctx, func(stx *sessionTx, limit int) (int64, error) {
		blobs, err := scan[[]models.Ref](stx.tx.Raw("SELECT blob_id FROM blob_references WHERE session_id = @s UNION SELECT id FROM blobs WHERE session_id = @s LIMIT @limit", map[string]any{"s": lease.id, "limit": limit}))
		if err == nil && len(blobs) > 0 {
			err = stx.tx.Where("session_id = ? AND blob_id IN ?", lease.id, blobs).Delete(&models.BlobReference{}).Error
		}
		if err == nil && len(blobs) > 0 {
			err = stx.tx.Model(&models.Blob{}).Where("session_id = ? AND id IN ?", lease.id, blobs).UpdateColumn("session_id", nil).Error
		}
		if err == nil && len(blobs) > 0 {
			_, err = removeBlobs(stx.tx, stx.session.Owner, blobs)
		}
		return int64(len(blobs)), err
	})
}

// Answers removes the stored answers that mention one of the sessions, or the user of the owner if one is named; with dry
// it only counts them.
func (r *Purges) Answers(ctx context.Context, owner, user string, sessions []core.SessionID, dry bool) (int64, error) {
	mentions := idsOf(sessions, func(id core.SessionID) string { return string(id) })
	if user != "" {
		mentions = append(mentions, mentionOfUser(user))
	}
	var n int64
	for part := range slices.Chunk(mentions, maxIDs) {
		db := r.db.WithContext(ctx)
		which := db.Model(&models.IdempotencyMention{}).Select("owner, key").Where("mention IN ?", part)
		if owner != "" {
			which = which.Where("owner = ?", owner)
		}
		// A request without an answer or a result checks what still exists when it stores
		// them.
		kept := db.Model(&models.IdempotencyKey{}).Where("(status IS NOT NULL OR result <> '') AND (owner, key) IN (?)", which)
		some, err := int64(0), error(nil)
		if dry {
			some, err = count(kept)
		} else {
			res := kept.Delete(&models.IdempotencyKey{})
			some, err = res.RowsAffected, res.Error
		}
		if n += some; err != nil {
			return n, wrapError(err, "idempotency keys of", owner)
		}
	}
	return n, nil
}

// firstID sorts before every id.
const firstID = "00000000-0000-0000-0000-000000000000"

// sweepEventsSQL deletes the events of some sessions, up to a number each; the newest of
// each session stays. On PostgreSQL it skips rows that another transaction has locked.
const sweepEventsSQL = `WITH old (session_id, event_seq) AS (VALUES %s)
DELETE FROM session_events WHERE (session_id, event_seq) IN (
	SELECT e.session_id, e.event_seq FROM old
	JOIN sessions s ON s.id = old.session_id
	JOIN session_events e ON e.session_id = old.session_id AND e.event_seq <= old.event_seq AND e.event_seq < s.last_event_seq%s)`

// SweepEvents finds the first limit events after the place that are older than keep, and
// removes them with those before them, except for the newest event of each session. A sweep
// may continue where the last one ended: an event that was the newest then is removed with
// the next old event of its session, as are messages and starts of runs, which are not looked for.
func (r *Purges) SweepEvents(ctx context.Context, keep time.Duration, from core.EventPlace, limit int) (core.SweptEvents, error) {
	if from.Session == "" {
		from.Session = firstID
	}
	db := r.db.WithContext(ctx)
	old, err := findRows[models.Event](db.Select("at, session_id, event_seq").Where("run_id IS NULL OR type <> 'message.created' AND type <> 'run.queued' AND type <> 'run.started'").
		Where("(at, session_id, event_seq) > (?, ?, ?)", from.At.UTC(), from.Session, from.Seq).Where("at < " + clockBoundSQL(db, -keep)).
		Order("at, session_id, event_seq").Limit(limit))
	if err != nil {
		return core.SweptEvents{Next: from}, fmt.Errorf("find old events: %w", err)
	}
	if len(old) == 0 {
		return core.SweptEvents{Next: from, Done: true}, nil
	}
	last := old[len(old)-1].Core()
	next := core.EventPlace{At: last.At, Session: last.SessionID, Seq: last.Seq}
	newest := map[string]int64{} // of the old ones, by session
	for _, e := range old {
		newest[e.SessionID] = max(newest[e.SessionID], e.EventSeq)
	}
	row, lock := "(?, ?)", ""
	if isPostgres(db) {
		row, lock = "(CAST(? AS uuid), CAST(? AS bigint))", " FOR UPDATE OF e SKIP LOCKED"
	}
	var args []any
	for session, seq := range newest {
		args = append(args, session, seq)
	}
	rows := strings.TrimSuffix(strings.Repeat(row+", ", len(newest)), ", ")
	res := db.Exec(fmt.Sprintf(sweepEventsSQL, rows, lock), args...)
	if res.Error != nil {
		return core.SweptEvents{Next: from}, fmt.Errorf("remove old events: %w", res.Error)
	}
	return core.SweptEvents{Removed: res.RowsAffected, Next: next, Done: len(old) < limit}, nil
}

// ExpiredSessions returns up to limit sessions, the oldest first: those that were archived longer than
// keep ago and have no unfinished run, or temporary ones whose last activity was longer than keep ago. A
// run that waits for an answer keeps no temporary one.
func (r *Purges) ExpiredSessions(ctx context.Context, temporary bool, keep time.Duration, limit int) ([]core.SessionID, error) {
	db, since, active := r.db.WithContext(ctx).Model(&models.Session{}), "archived_at", "status IN ('running', 'waiting')"
	if temporary {
		db, since, active = db.Where("temporary"), "updated_at", active+" AND status = 'running'"
	}
	var ids []core.SessionID
	err := db.Where(since+" < "+clockBoundSQL(db, -keep)).Order(since+", id").Limit(limit).
		Where("NOT EXISTS (SELECT 1 FROM runs WHERE runs.session_id = sessions.id AND status = 'queued')").
		Where("NOT EXISTS (SELECT 1 FROM runs WHERE runs.session_id = sessions.id AND "+active+")").Pluck("id", &ids).Error
	return ids, wrapError(err, "sessions", "that have expired")
}
