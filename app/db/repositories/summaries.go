package repositories

import (
	"context"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Summaries reads the versions of sessions' summaries; Sessions.ApplyContext
// writes them. Safe for concurrent use.
type Summaries struct {
	db *gorm.DB
}

// NewSummaries returns the summaries in db.
func NewSummaries(db *gorm.DB) *Summaries { return &Summaries{db: db} }

// List returns the versions of a session's summary, the newest first.
func (r *Summaries) List(ctx context.Context, scope core.Scope, id core.SessionID, q core.PageQuery) (core.Page[core.Summary], error) {
	none := core.Page[core.Summary]{}
	if err := known("session", id); err != nil {
		return none, err
	}
	limit, err := pageLimit(q.Limit)
	if err != nil {
		return none, err
	}
	after, more, err := parseCursor(q.Cursor, "summaries")
	if err != nil {
		return none, err
	}
	db := r.db.WithContext(ctx)
	list := db.Scopes(within(scope, id))
	if more {
		list = list.Where("version < ?", after.N)
	}
	var rows []models.Summary
	err = list.Order("version DESC").Limit(limit + 1).Find(&rows).Error
	if err == nil && len(rows) == 0 {
		err = mustSee(db, scope, id)
	}
	if err != nil {
		return none, failure(err, "session", id)
	}
	return page(rows, limit, sure(models.Summary.Core), func(s models.Summary) position {
		return position{List: "summaries", N: int64(s.Version)}
	})
}

// Get returns one version of a session's summary.
func (r *Summaries) Get(ctx context.Context, scope core.Scope, id core.SessionID, version int) (core.Summary, error) {
	if err := known("session", id); err != nil {
		return core.Summary{}, err
	}
	db := r.db.WithContext(ctx)
	var row models.Summary
	err := db.Scopes(within(scope, id)).Where("version = ?", version).Take(&row).Error
	if err == nil {
		return row.Core(), nil
	}
	if err := mustSee(db, scope, id); err != nil {
		return core.Summary{}, err
	}
	if failed := failure(err, "session", id); !isNotFound(failed) {
		return core.Summary{}, failed
	}
	return core.Summary{}, core.Errorf(core.ErrNotFound, "session %s has no summary with version %d", id, version)
}
