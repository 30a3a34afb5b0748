package repositories

import (
	"context"
	"fmt"
	"strings"
	"time"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

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
// the next old event of its session.
func (r *Purges) SweepEvents(ctx context.Context, keep time.Duration, from core.EventPlace, limit int) (core.SweptEvents, error) {
	if from.Session == "" {
		from.Session = firstID
	}
	db := r.db.WithContext(ctx)
	old, err := findRows[models.Event](db.Select("at, session_id, event_seq").
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
