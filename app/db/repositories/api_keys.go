package repositories

import (
	"context"
	"time"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// APIKeys are the keys of the API that are in the database, by the hashes of their
// secrets. They are the operator's: the methods take no scope. Safe for concurrent
// use.
type APIKeys struct {
	db *gorm.DB
}

// NewAPIKeys returns the keys in db.
func NewAPIKeys(db *gorm.DB) *APIKeys { return &APIKeys{db: db} }

// Create stores a key whose secret has that hash, and the entry of the audit log that
// tells of it.
func (r *APIKeys) Create(ctx context.Context, key core.APIKey, hash string, entry core.AuditEntry) error {
	if !storableText(key.Name) || !storableText(key.Owner) {
		return core.Errorf(core.ErrInvalid, unstorable)
	}
	err := inTx(ctx, r.db, func(tx *gorm.DB) error {
		row := models.APIKeyFrom(key, hash)
		if err := tx.Create(&row).Error; err != nil {
			return err
		}
		return note(tx, entry)
	})
	return failure(err, "API key", key.ID)
}

// ByHash returns the key whose secret has that hash, valid or not. ErrNotFound when
// there is none; no error names the hash.
func (r *APIKeys) ByHash(ctx context.Context, hash string) (core.APIKey, error) {
	var rows []models.APIKey
	if err := r.db.WithContext(ctx).Where("secret_hash = ?", hash).Limit(1).Find(&rows).Error; err != nil {
		return core.APIKey{}, failure(err, "API key", "of a secret")
	}
	if len(rows) == 0 {
		return core.APIKey{}, core.Errorf(core.ErrNotFound, "this API key is not known")
	}
	return rows[0].Core(), nil
}

// ByIDs returns those of the keys that there are, in any order.
func (r *APIKeys) ByIDs(ctx context.Context, ids []core.KeyID) ([]core.APIKey, error) {
	var rows []models.APIKey
	if err := r.db.WithContext(ctx).Where("id IN ?", ids).Find(&rows).Error; err != nil {
		return nil, failure(err, "API keys", "")
	}
	keys := []core.APIKey{}
	for _, row := range rows {
		keys = append(keys, row.Core())
	}
	return keys, nil
}

// List returns all keys, the oldest first, revoked ones too.
func (r *APIKeys) List(ctx context.Context) ([]core.APIKey, error) {
	var rows []models.APIKey
	if err := r.db.WithContext(ctx).Order("created_at, id").Find(&rows).Error; err != nil {
		return nil, failure(err, "API keys", "")
	}
	keys := []core.APIKey{}
	for _, row := range rows {
		keys = append(keys, row.Core())
	}
	return keys, nil
}

// Revoke makes the key open nothing from now on, and stores the entry of the audit log
// that tells of it. A key that was revoked before stays as it is, and nothing is noted.
func (r *APIKeys) Revoke(ctx context.Context, id core.KeyID, entry core.AuditEntry) error {
	if err := known("API key", id); err != nil {
		return err
	}
	err := inTx(ctx, r.db, func(tx *gorm.DB) error {
		res := tx.Model(&models.APIKey{}).Where("id = ? AND revoked_at IS NULL", id).UpdateColumn("revoked_at", entry.CreatedAt)
		if res.Error != nil || res.RowsAffected == 0 {
			return res.Error
		}
		return note(tx, entry)
	})
	return failure(err, "API key", id)
}

// Used stores when keys were last used.
func (r *APIKeys) Used(ctx context.Context, at map[core.KeyID]time.Time) error {
	for id, when := range at {
		err := r.db.WithContext(ctx).Model(&models.APIKey{}).
			Where("id = ? AND (last_used_at IS NULL OR last_used_at < ?)", id, when.UTC()).
			UpdateColumn("last_used_at", when.UTC()).Error
		if err != nil {
			return failure(err, "API key", id)
		}
	}
	return nil
}
