package repositories

import (
	"cmp"
	"context"
	"slices"
	"time"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// sessionList is an order of sessions.
type sessionList struct {
	name          string // in cursors
	column        string
	withSummaries bool // with the texts of summaries
	timeOf        func(sessionRow) time.Time
}

// newestFirstSQL is the order by the column, total by the id.
func (l sessionList) newestFirstSQL() string { return l.column + " DESC, id DESC" }

// sessionListOf returns the list for the query.
func sessionListOf(q core.SessionQuery) sessionList {
	if q.Order == core.OrderByCreation {
		return sessionList{"sessions-created", "created_at", q.Summaries, func(s sessionRow) time.Time { return s.CreatedAt }}
	}
	return sessionList{"sessions", "updated_at", q.Summaries, func(s sessionRow) time.Time { return s.UpdatedAt }}
}

// List returns the sessions in the scope besides temporary ones, ordered by last activity or by
// creation, newest first, or by how well the text fits. ErrInvalid for a cursor of another list and for a text that cannot be searched
// for.
func (r *Sessions) List(ctx context.Context, tenant core.Tenant, q core.SessionQuery) (core.Page[core.Session], error) {
	if q.Order == core.OrderByRelevance {
		return r.listRanked(ctx, tenant, q)
	}
	none := core.Page[core.Session]{}
	list := sessionListOf(q)
	limit, after, err := pageStart(q.Limit, q.Cursor, list.name)
	if err != nil {
		return none, err
	}
	db := r.db.WithContext(ctx).Scopes(visibleTo(tenant))
	if after.isSet() {
		db = db.Where("("+list.column+", id) < (?, ?)", time.UnixMicro(after.N).UTC(), after.ID)
	}
	db = db.Where("NOT temporary")
	if db, err = filterSessions(db, tenant, q); err != nil {
		return none, err
	}
	if q.Limit = limit; q.Text != "" {
		NewSearch(r.db).indexScope(ctx, tenant, "")
	}
	db = withNarrowIndex(db.Model(&models.Session{}), tenant, q)
	rows, limit, err := list.findSessions(db.Session(&gorm.Session{}), tenant, q)
	if err != nil {
		return none, wrapError(err, "sessions of", tenant.Owner)
	}
	return pageOf(rows, limit, infallible(sessionRow.toCore), func(s sessionRow) position {
		return position{List: list.name, N: list.timeOf(s).UnixMicro(), ID: s.ID}
	})
}

// findSessions returns the first q.Limit sessions, or fewer if they exceed the byte limit,
// and how many these are; plus the one after them, if there is one. Archived and other
// sessions have separate indexes, so that each query skips no rows of the other kind.
func (l sessionList) findSessions(db *gorm.DB, tenant core.Tenant, q core.SessionQuery) ([]sessionRow, int, error) {
	active, archived := db.Where("archived_at IS NULL"), db.Where("archived_at IS NOT NULL")
	bytes := cmp.Or(q.Bytes, core.MaxPageBytes)
	switch {
	case q.Text != "" && q.Archived:
		rows, err := l.sessionsWith(db, tenant, q)
		return rows, q.Limit, err
	case q.Text != "":
		rows, err := l.sessionsWith(active, tenant, q)
		return rows, q.Limit, err
	case !q.Archived:
		return l.findSome(active, q.Limit, bytes)
	}
	rows, limit, err := l.findSome(active, q.Limit, bytes/2)
	if err != nil {
		return nil, 0, err
	}
	more, limit, err := l.findSome(archived, limit, bytes/2)
	rows = append(rows, more...)
	slices.SortFunc(rows, func(a, b sessionRow) int { return cmp.Or(l.timeOf(b).Compare(l.timeOf(a)), cmp.Compare(b.ID, a.ID)) })
	return rows[:min(limit+1, len(rows))], limit, err
}

// findSome returns the first sessions of a list, like findSessions.
func (l sessionList) findSome(list *gorm.DB, limit int, bytes int64) (rows []sessionRow, _ int, err error) {
	list = list.Order(l.newestFirstSQL()).Session(&gorm.Session{})
	long := longSessionColumns()
	if l.withSummaries {
		long.texts = append(long.texts, "conversation_summary")
		long.jsons = append(long.jsons, "prompt_state", "native_summary")
	}
	limit, err = fitRows(list, long, limit, bytes)
	if err == nil {
		err = list.Scopes(selectSessions(l.withSummaries)).Limit(limit + 1).Find(&rows).Error
	}
	return rows, limit, err
}
