package repositories

import (
	"context"
	"encoding/json"
	"time"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// APIKeys are the API keys in the database, by the hashes of their secrets. They belong to
// the operator: the methods take no scope. Safe for concurrent use.
type APIKeys struct{ db *gorm.DB }

// NewAPIKeys returns the keys in db.
func NewAPIKeys(db *gorm.DB) *APIKeys { return &APIKeys{db: db} }

// Create stores a key whose secret has that hash, with its entry in the audit log.
func (r *APIKeys) Create(ctx context.Context, key core.APIKey, hash string, entry core.AuditEntry) error {
	err := inTx(ctx, r.db, func(tx *gorm.DB) error {
		row := models.APIKey{APIKey: key, SecretHash: hash, Scopes: key.Rights.String()}
		if err := tx.Create(&row).Error; err != nil {
			return err
		}
		return insertAuditEntry(tx, entry)
	})
	return wrapError(err, "API key", key.ID)
}

// ByHash returns the key whose secret has that hash, valid or not. ErrNotFound when there
// is none; no error contains the hash.
func (r *APIKeys) ByHash(ctx context.Context, hash string) (core.APIKey, error) {
	row, err := findFirst[models.APIKey](r.db.WithContext(ctx).Where("secret_hash = ?", hash))
	if err == nil && row == nil {
		err = core.Errorf(core.ErrNotFound, "unknown API key")
	}
	if err != nil {
		return core.APIKey{}, wrapError(err, "API key", "of a secret")
	}
	return row.Core(), nil
}

// ByIDs returns those of the keys that exist, in any order.
func (r *APIKeys) ByIDs(ctx context.Context, ids []core.KeyID) ([]core.APIKey, error) {
	list, err := findAll(r.db.WithContext(ctx).Where("id IN ?", ids), models.APIKey.Core)
	return list, wrapError(err, "API keys", "")
}

// List returns all keys, including revoked ones, the oldest first.
func (r *APIKeys) List(ctx context.Context) ([]core.APIKey, error) {
	list, err := findAll(r.db.WithContext(ctx).Order("created_at, id"), models.APIKey.Core)
	return list, wrapError(err, "API keys", "")
}

// Revoke revokes the key immediately, and stores the entry in the audit log. A key that was
// revoked before stays as it is, without a new entry.
func (r *APIKeys) Revoke(ctx context.Context, id core.KeyID, entry core.AuditEntry) error {
	err := inTx(ctx, r.db, func(tx *gorm.DB) error {
		res := byID(ctx, tx, "API key", id).Model(&models.APIKey{}).Where("id = ? AND revoked_at IS NULL", id).UpdateColumn("revoked_at", entry.CreatedAt)
		if res.Error != nil || res.RowsAffected == 0 {
			return res.Error
		}
		return insertAuditEntry(tx, entry)
	})
	return wrapError(err, "API key", id)
}

// Used stores when keys were last used.
func (r *APIKeys) Used(ctx context.Context, at map[core.KeyID]time.Time) error {
	for id, when := range at {
		err := r.db.WithContext(ctx).Model(&models.APIKey{}).
			Where("id = ? AND (last_used_at IS NULL OR last_used_at < ?)", id, when.UTC()).
			UpdateColumn("last_used_at", when.UTC()).Error
		if err != nil {
			return wrapError(err, "API key", id)
		}
	}
	return nil
}

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
