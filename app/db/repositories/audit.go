package repositories

import (
	"context"
	"time"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Audit is the log of what operators did. Entries are only added. Safe for concurrent
// use.
type Audit struct {
	db *gorm.DB
}

// NewAudit returns the log in db.
func NewAudit(db *gorm.DB) *Audit { return &Audit{db: db} }

// Add stores an entry.
func (r *Audit) Add(ctx context.Context, entry core.AuditEntry) error {
	return failure(note(r.db.WithContext(ctx), entry), "audit entry", entry.ID)
}

// Last returns the newest entry of an action on a target; ErrNotFound when there is none.
func (r *Audit) Last(ctx context.Context, action, target string) (core.AuditEntry, error) {
	var row models.AuditEntry
	err := r.db.WithContext(ctx).Where("action = ? AND target = ?", action, target).Order("created_at DESC, id DESC").Take(&row).Error
	if err != nil {
		return core.AuditEntry{}, failure(err, "audit entry", target)
	}
	return row.Core()
}

// note adds an entry within a transaction.
func note(tx *gorm.DB, entry core.AuditEntry) error {
	row := models.AuditEntryFrom(entry)
	return tx.Create(&row).Error
}

// List returns a page of entries, the newest first.
func (r *Audit) List(ctx context.Context, q core.PageQuery) (core.Page[core.AuditEntry], error) {
	none := core.Page[core.AuditEntry]{}
	limit, err := pageLimit(q.Limit)
	if err != nil {
		return none, err
	}
	after, more, err := parseCursor(q.Cursor, "audit")
	if err != nil {
		return none, err
	}
	db := r.db.WithContext(ctx)
	if more {
		db = db.Where("(created_at, id) < (?, ?)", time.UnixMicro(after.N).UTC(), after.ID)
	}
	var rows []models.AuditEntry
	if err := db.Order("created_at DESC, id DESC").Limit(limit + 1).Find(&rows).Error; err != nil {
		return none, failure(err, "audit log", "")
	}
	return page(rows, limit, models.AuditEntry.Core, func(e models.AuditEntry) position {
		return position{List: "audit", N: e.CreatedAt.UnixMicro(), ID: e.ID}
	})
}
