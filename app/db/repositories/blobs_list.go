package repositories

import (
	"context"
	"crypto/rand"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// List returns the files in the scope, the newest first: for a session those that its
// messages refer to and those that were uploaded for it.
func (r *Blobs) List(ctx context.Context, tenant core.Tenant, q core.BlobQuery) (core.Page[core.Blob], error) {
	none := core.Page[core.Blob]{}
	limit, after, err := pageStart(q.Limit, q.Cursor, "blobs")
	if err != nil {
		return none, err
	}
	db := r.db.WithContext(ctx).Scopes(inScope(tenant))
	if q.SessionID != "" {
		db = db.Where("id IN (SELECT blob_id FROM blob_references WHERE session_id = @s UNION SELECT id FROM blobs WHERE session_id = @s)", map[string]any{"s": q.SessionID})
	}
	db = orderNewestFirst(db, after)
	var rows []models.Blob
	if err := db.Limit(limit + 1).Find(&rows).Error; err != nil {
		return none, wrapError(err, "files of", tenant.Owner)
	}
	return pageOf(rows, limit, infallible(models.Blob.Core), func(b models.Blob) position {
		return position{List: "blobs", N: b.CreatedAt.UnixMicro(), ID: b.ID}
	})
}

// Find returns a file of any owner.
func (r *Blobs) Find(ctx context.Context, id core.BlobID) (core.Blob, error) {
	return takeBlob(byID(ctx, r.db, "blob", id), id)
}

// Delete removes a file even if messages refer to it: these keep its name and show that it
// is no longer stored.
func (r *Blobs) Delete(ctx context.Context, tenant core.Tenant, id core.BlobID) error {
	return wrapError(inTx(ctx, r.db, func(tx *gorm.DB) error {
		if err := lockBlobs(tx, tenant.Owner); err != nil {
			return err
		}
		var row models.Blob
		if err := byID(ctx, tx, "blob", id).Scopes(inScope(tenant)).Where("id = ?", id).Take(&row).Error; err != nil {
			return err
		}
		if err := tx.Where("blob_id = ?", id).Delete(&models.BlobReference{}).Error; err != nil {
			return err
		}
		_, err := removeBlobs(tx, tenant.Owner, []models.Ref{models.Ref(id)})
		return err
	}), "blob", id)
}

// signingKeyBytes is the length of a key for HMAC-SHA256.
const signingKeyBytes = 32

// SigningKey returns the key that signs links to files, shared by all processes. The first
// caller creates it.
func (r *Blobs) SigningKey(ctx context.Context) ([]byte, error) {
	const purpose = "files"
	row := models.SigningKey{Purpose: purpose, CreatedAt: core.Now(), Secret: make([]byte, signingKeyBytes)}
	_, _ = rand.Read(row.Secret) // never fails
	var stored models.SigningKey
	find := func() error { return r.db.WithContext(ctx).Where("purpose = ?", purpose).Limit(1).Find(&stored).Error }
	err := find()
	if err == nil && len(stored.Secret) == 0 {
		if err = insertRows(r.db.WithContext(ctx).Clauses(clause.OnConflict{DoNothing: true}), &row); err == nil {
			err = find()
		}
	}
	return stored.Secret, wrapError(err, "signing key", purpose)
}
