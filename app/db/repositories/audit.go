package repositories

import (
	"context"
	"encoding/json"

	"gorm.io/gorm"

	"bobbin/app/core"
)

// Audit is the log of operators' actions. Entries are only added. Safe for concurrent use.
type Audit struct{ db *gorm.DB }

// NewAudit returns the log in db.
func NewAudit(db *gorm.DB) *Audit { return &Audit{db: db} }

// Add stores an entry about what was done now, with its details as JSON, also if ctx has ended.
func (r *Audit) Add(ctx context.Context, entry core.AuditEntry, details any) (err error) {
	entry.ID, entry.CreatedAt = core.NewID[core.AuditID](), core.Now()
	if entry.Details, err = json.Marshal(details); err == nil {
		err = insertAuditEntry(r.db.WithContext(context.WithoutCancel(ctx)), entry)
	}
	return wrapError(err, "audit entry", entry.ID)
}

// Last returns the newest entry of an action on a target; ErrNotFound when there is none.
func (r *Audit) Last(ctx context.Context, action, target string) (core.AuditEntry, error) {
	return takeRow[core.AuditEntry](r.db.WithContext(ctx).Where("action = ? AND target = ?", action, target).Order("created_at DESC, id DESC"), "audit entry", target)
}

func insertAuditEntry(tx *gorm.DB, entry core.AuditEntry) error {
	return tx.Create(&entry).Error
}

// List returns a page of entries, the newest first.
func (r *Audit) List(ctx context.Context, q core.PageQuery) (core.Page[core.AuditEntry], error) {
	return findPage(r.db.WithContext(ctx), keyset[core.AuditEntry]{list: "audit", column: "created_at"}, q, longColumns{}, func(e core.AuditEntry) position { return createdAt(e.CreatedAt, e.ID) })
}
