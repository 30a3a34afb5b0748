package repositories

import (
	"cmp"
	"encoding/json"
	"time"

	"gorm.io/gorm"

	"bobbin/app/core"
)

// filterSessions narrows a list of sessions to the query, except for its text.
func filterSessions(db *gorm.DB, tenant core.Tenant, q core.SessionQuery) (*gorm.DB, error) {
	if q.Agent != "" {
		db = db.Where("agent = ?", q.Agent)
	}
	if q.UserID != "" {
		db = db.Where("user_id = ?", q.UserID)
	}
	if q.Pinned != nil { // a literal, as the partial indexes have it
		db = db.Where(map[bool]string{true: "pinned", false: "NOT pinned"}[*q.Pinned])
	}
	db = inRange(inRange(db, "created_at", q.CreatedAfter, q.CreatedBefore), "updated_at", q.UpdatedAfter, q.UpdatedBefore)
	const active = "id IN (SELECT r.session_id FROM runs r WHERE r.status IN ('running', 'waiting') AND r.owner = ?"
	const queued = "id IN (SELECT r.session_id FROM runs r WHERE r.status = 'queued' AND r.status IN ('queued', 'running') AND r.owner = ?)"
	switch q.Status { // few runs are unfinished, and partial indexes cover them
	case core.SessionRunning, core.SessionWaiting:
		db = db.Where(active+" AND r.status = ?)", tenant.Owner, string(q.Status))
	case core.SessionQueued:
		db = db.Where(queued+" AND NOT "+active+")", tenant.Owner, tenant.Owner)
	case core.SessionIdle:
		db = db.Where("NOT "+queued+" AND NOT "+active+")", tenant.Owner, tenant.Owner)
	}
	if q.Tag != "" {
		if isPostgres(db) {
			db = db.Where("tags @> jsonb_build_array(CAST(? AS text))", q.Tag)
		} else {
			db = db.Where("EXISTS (SELECT 1 FROM json_each(sessions.tags) t WHERE t.value = ?)", q.Tag)
		}
	}
	return withMetadata(db, q.Metadata)
}

// withNarrowIndex names the index that leads to the few sessions that pass a filter: SQLite,
// without statistics, would look through all sessions of the owner in the order of the list.
// Searches begin with what matches their text.
func withNarrowIndex(db *gorm.DB, tenant core.Tenant, q core.SessionQuery) *gorm.DB {
	index := ""
	switch {
	case isPostgres(db) || q.Text != "":
	case q.Status != "" && q.Status != core.SessionIdle:
		index = "sqlite_autoindex_sessions_1" // of the ids, which come from runs
	case q.Pinned != nil && *q.Pinned && cmp.Or(tenant.User, q.UserID) != "":
		index = "sessions_user_pinned"
	case q.Pinned != nil && *q.Pinned:
		index = "sessions_pinned"
	}
	if index == "" {
		return db
	}
	return db.Table("sessions INDEXED BY " + index)
}

// inRange narrows a list to rows in a time range; a zero time is no bound.
func inRange(db *gorm.DB, column string, after, before time.Time) *gorm.DB {
	if !after.IsZero() {
		db = db.Where(column+" >= ?", after.UTC())
	}
	if !before.IsZero() {
		db = db.Where(column+" < ?", before.UTC())
	}
	return db
}

// withMetadata narrows a list of sessions to those whose metadata have all members of an
// object: strings, numbers and booleans.
func withMetadata(db *gorm.DB, raw json.RawMessage) (*gorm.DB, error) {
	if len(raw) == 0 {
		return db, nil
	}
	var members map[string]any
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, core.Errorf(core.ErrInvalid, "metadata must be a JSON object")
	}
	if isPostgres(db) {
		return db.Where("metadata @> CAST(? AS jsonb)", string(raw)), nil
	}
	const member = "EXISTS (SELECT 1 FROM json_each(sessions.metadata) e WHERE e.key = ? AND "
	for key, value := range members {
		switch v := value.(type) {
		case string:
			db = db.Where(member+"e.type = 'text' AND e.value = ?)", key, v)
		case float64:
			db = db.Where(member+"e.type IN ('integer', 'real') AND e.value = ?)", key, v)
		case bool:
			db = db.Where(member+"e.type = ?)", key, map[bool]string{true: "true", false: "false"}[v])
		default:
			return nil, core.Errorf(core.ErrInvalid, "metadata can be filtered by strings, numbers and booleans")
		}
	}
	return db, nil
}
