package repositories

import (
	"context"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Events reads the durable events of sessions; they are written with what they report. Safe
// for concurrent use.
type Events struct {
	db *gorm.DB
}

// NewEvents returns the events in db.
func NewEvents(db *gorm.DB) *Events { return &Events{db: db} }

// After returns up to limit events with a number greater than afterSeq, in order. Messages
// and the session in them have their present state, without deleted content. The caller
// must have checked access to the session.
func (r *Events) After(ctx context.Context, session core.SessionID, afterSeq int64, limit int) ([]core.Event, error) {
	db := byID(ctx, r.db, "session", session)
	var rows []models.Event
	err := db.Where("session_id = ? AND event_seq > ?", session, afterSeq).
		Order("event_seq").Limit(limit).Find(&rows).Error
	if err != nil {
		return nil, wrapError(err, "events of session", session)
	}
	events, err := renderEvents(db, session, rows)
	return events, wrapError(err, "events of session", session)
}

// Page returns the first events with a number greater than afterSeq, in order: at most
// limit, and at most core.MaxPageBytes together, but at least one. More reports whether
// others may follow. The caller must have checked access to the session.
func (r *Events) Page(ctx context.Context, session core.SessionID, afterSeq int64, limit int) (page []core.Event, more bool, err error) {
	list := byID(ctx, r.db, "session", session).Model(&models.Event{}).Where("session_id = ? AND event_seq > ?", session, afterSeq).
		Order("event_seq").Session(&gorm.Session{})
	n, err := fitRows(list, longEventColumns(list), limit, core.MaxPageBytes)
	if err != nil {
		return nil, false, wrapError(err, "events of session", session)
	}
	page, err = r.After(ctx, session, afterSeq, n)
	return page, len(page) == n, err
}

// Oldest returns the number of the oldest stored event, 0 if there is none.
func (r *Events) Oldest(ctx context.Context, session core.SessionID) (int64, error) {
	var seq int64
	err := byID(ctx, r.db, "session", session).Model(&models.Event{}).Select("COALESCE(MIN(event_seq), 0)").
		Where("session_id = ?", session).Scan(&seq).Error
	return seq, wrapError(err, "events of session", session)
}

// LastOf returns the numbers of the newest events of the sessions of any owner, without
// sessions that do not exist. The caller must have checked access.
func (r *Events) LastOf(ctx context.Context, sessions []core.SessionID) (map[core.SessionID]int64, error) {
	var rows []models.Session
	if err := r.db.WithContext(ctx).Select("id", "last_event_seq").Where("id IN ?", sessions).Find(&rows).Error; err != nil {
		return nil, wrapError(err, "sessions", "")
	}
	newest := make(map[core.SessionID]int64, len(rows))
	for _, row := range rows {
		newest[core.SessionID(row.ID)] = row.LastEventSeq
	}
	return newest, nil
}

// Last returns the number of the newest event, 0 if there is none yet.
func (r *Events) Last(ctx context.Context, tenant core.Tenant, session core.SessionID) (int64, error) {
	var row models.Session
	err := byID(ctx, r.db, "session", session).Select("last_event_seq").Scopes(visibleTo(tenant)).
		Where("id = ?", session).Take(&row).Error
	return row.LastEventSeq, wrapError(err, "session", session)
}
