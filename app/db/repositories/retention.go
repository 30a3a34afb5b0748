package repositories

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Retention finds and removes what was kept long enough. It is the worker's: its
// methods take no scope. Safe for concurrent use, by many processes. Times are the
// database's.
type Retention struct {
	db *gorm.DB
}

// NewRetention returns what removes old things from db.
func NewRetention(db *gorm.DB) *Retention { return &Retention{db: db} }

// firstID is before every id.
const firstID = "00000000-0000-0000-0000-000000000000"

// Events in a range of places; the newest of each session stays. On PostgreSQL what
// another transaction holds is passed by.
const sweepEventsSQL = `DELETE FROM session_events WHERE (session_id, event_seq) IN (
	SELECT e.session_id, e.event_seq FROM session_events e JOIN sessions s ON s.id = e.session_id
	WHERE (e.at, e.session_id, e.event_seq) > (@at, @session, @seq)
		AND (e.at, e.session_id, e.event_seq) <= (@last_at, @last_session, @last_seq)
		AND e.event_seq < s.last_event_seq%s)`

// SweepEvents looks at the first limit events after the place that are older than keep,
// and removes them, but for the newest one of each session.
func (r *Retention) SweepEvents(ctx context.Context, keep time.Duration, from core.EventPlace, limit int) (core.SweptEvents, error) {
	if from.Session == "" {
		from.Session = firstID
	}
	db := r.db.WithContext(ctx)
	var old []models.Event
	err := db.Select("at, session_id, event_seq").
		Where("(at, session_id, event_seq) > (?, ?, ?)", from.At.UTC(), from.Session, from.Seq).Where("at < " + clockSQL(db, -keep)).
		Order("at, session_id, event_seq").Limit(limit).Find(&old).Error
	if err != nil {
		return core.SweptEvents{Next: from}, fmt.Errorf("find old events: %w", err)
	}
	if len(old) == 0 {
		return core.SweptEvents{Next: from, Done: true}, nil
	}
	last := old[len(old)-1].Core()
	next := core.EventPlace{At: last.At, Session: last.SessionID, Seq: last.Seq}
	lock := ""
	if isPostgres(db) {
		lock = " FOR UPDATE OF e SKIP LOCKED"
	}
	res := db.Exec(fmt.Sprintf(sweepEventsSQL, lock), map[string]any{
		"at": from.At.UTC(), "session": from.Session, "seq": from.Seq,
		"last_at": next.At.UTC(), "last_session": next.Session, "last_seq": next.Seq,
	})
	if res.Error != nil {
		return core.SweptEvents{Next: from}, fmt.Errorf("remove old events: %w", res.Error)
	}
	return core.SweptEvents{Removed: res.RowsAffected, Next: next, Done: len(old) < limit}, nil
}

// ArchivedSessions returns up to limit sessions that were archived longer than keep ago
// and have no run that has not ended, the first ones first.
func (r *Retention) ArchivedSessions(ctx context.Context, keep time.Duration, limit int) ([]core.SessionID, error) {
	db := r.db.WithContext(ctx)
	var ids []core.SessionID
	err := db.Model(&models.Session{}).Where("archived_at < "+clockSQL(db, -keep)).
		Where("NOT EXISTS (SELECT 1 FROM runs WHERE runs.session_id = sessions.id AND status IN ('queued', 'running', 'waiting'))").
		Order("archived_at, id").Limit(limit).Pluck("id", &ids).Error
	if err != nil {
		return nil, fmt.Errorf("find archived sessions: %w", err)
	}
	return ids, nil
}
