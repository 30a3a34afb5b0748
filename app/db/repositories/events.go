package repositories

import (
	"context"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Events reads the durable events of sessions; what they report writes them. Safe
// for concurrent use.
type Events struct {
	db *gorm.DB
}

// NewEvents returns the events in db.
func NewEvents(db *gorm.DB) *Events { return &Events{db: db} }

// After returns the first events with a greater number than afterSeq, in their
// order, at most limit. The caller has made sure that the session may be seen.
func (r *Events) After(ctx context.Context, session core.SessionID, afterSeq int64, limit int) ([]core.Event, error) {
	if err := known("session", session); err != nil {
		return nil, err
	}
	var rows []models.Event
	err := r.db.WithContext(ctx).Where("session_id = ? AND event_seq > ?", session, afterSeq).
		Order("event_seq").Limit(limit).Find(&rows).Error
	if err != nil {
		return nil, failure(err, "events of session", session)
	}
	return values(rows, sure(models.Event.Core))
}

// Oldest returns the number of the oldest event that is kept, 0 if there is none.
func (r *Events) Oldest(ctx context.Context, session core.SessionID) (int64, error) {
	if err := known("session", session); err != nil {
		return 0, err
	}
	var seq int64
	err := r.db.WithContext(ctx).Model(&models.Event{}).Select("COALESCE(MIN(event_seq), 0)").
		Where("session_id = ?", session).Scan(&seq).Error
	return seq, failure(err, "events of session", session)
}

// FirstOfRun returns the number of the run's oldest event that is kept, 0 if there
// is none. It looks through the session's events: the caller has made sure that
// the session may be seen, and does not ask it for every turn.
func (r *Events) FirstOfRun(ctx context.Context, session core.SessionID, run core.RunID) (int64, error) {
	if err := known("session", session); err != nil {
		return 0, err
	}
	if err := known("run", run); err != nil {
		return 0, err
	}
	var seq int64
	err := r.db.WithContext(ctx).Model(&models.Event{}).Select("COALESCE(MIN(event_seq), 0)").
		Where("session_id = ? AND run_id = ?", session, run).Scan(&seq).Error
	return seq, failure(err, "events of run", run)
}

// LastOf returns the numbers of the newest events of the sessions, whosever they are,
// without those of sessions that do not exist. The caller has made sure that they may
// be seen.
func (r *Events) LastOf(ctx context.Context, sessions []core.SessionID) (map[core.SessionID]int64, error) {
	var rows []models.Session
	if err := r.db.WithContext(ctx).Select("id", "last_event_seq").Where("id IN ?", sessions).Find(&rows).Error; err != nil {
		return nil, failure(err, "sessions", "")
	}
	newest := make(map[core.SessionID]int64, len(rows))
	for _, row := range rows {
		newest[core.SessionID(row.ID)] = row.LastEventSeq
	}
	return newest, nil
}

// Last returns the number of the newest event, 0 if there was none yet.
func (r *Events) Last(ctx context.Context, scope core.Scope, session core.SessionID) (int64, error) {
	if err := known("session", session); err != nil {
		return 0, err
	}
	var row models.Session
	err := r.db.WithContext(ctx).Select("last_event_seq").Scopes(visible(scope)).
		Where("id = ?", session).Take(&row).Error
	return row.LastEventSeq, failure(err, "session", session)
}
