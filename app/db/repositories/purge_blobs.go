package repositories

import (
	"context"
	"slices"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Blobs returns the files that messages of the sessions refer to or that were uploaded for
// one of them, and those of the user if one is named.
func (r *Purges) Blobs(ctx context.Context, ids []core.SessionID, owner, user string) ([]core.BlobID, error) {
	var all []core.BlobID
	db := r.db.WithContext(ctx)
	if user != "" {
		if err := db.Model(&models.Blob{}).Where("owner = ? AND user_id = ?", owner, user).Pluck("id", &all).Error; err != nil {
			return nil, wrapError(err, "files of user", user)
		}
	}
	for part := range slices.Chunk(ids, purgeChunk) {
		var some []core.BlobID
		err := db.Raw("SELECT blob_id FROM blob_references WHERE session_id IN @s UNION SELECT id FROM blobs WHERE session_id IN @s",
			map[string]any{"s": part}).Scan(&some).Error
		if err != nil {
			return nil, wrapError(err, "files of session", part[0])
		}
		all = append(all, some...)
	}
	return all, nil
}

// blobsOfSQL selects files that messages of a session refer to, or that were uploaded for
// it.
const blobsOfSQL = `SELECT blob_id FROM blob_references WHERE session_id = @s UNION SELECT id FROM blobs WHERE session_id = @s LIMIT @limit`

// purgeBlobs removes the blobs that the session's messages refer to, or that were uploaded
// for it. Those that another session refers to stay, without a session.
func (lease *sessionLease) purgeBlobs(ctx context.Context, gone *core.Purged) error {
	return lease.runSteps(ctx, gone, func(stx *sessionTx, limit int, gone *core.Purged) (int64, error) {
		var blobs []models.Ref
		err := stx.tx.Raw(blobsOfSQL, map[string]any{"s": lease.id, "limit": limit}).Scan(&blobs).Error
		if err != nil || len(blobs) == 0 {
			return 0, err
		}
		res := stx.tx.Where("session_id = ? AND blob_id IN ?", lease.id, blobs).Delete(&models.BlobReference{})
		if res.Error != nil {
			return 0, res.Error
		}
		gone.Remove("blob_references", res.RowsAffected)
		err = stx.tx.Model(&models.Blob{}).Where("session_id = ? AND id IN ?", lease.id, blobs).UpdateColumn("session_id", nil).Error
		if err != nil {
			return 0, err
		}
		return int64(len(blobs)), removeAndCountBlobs(stx.tx, stx.session.Owner, blobs, gone)
	})
}

// purgeUserBlobs removes the blobs that the user uploaded, even if messages of others refer
// to them: these show that the file is gone.
func (r *Purges) purgeUserBlobs(ctx context.Context, owner, user string, gone *core.Purged) error {
	var all []models.Ref
	err := r.db.WithContext(ctx).Model(&models.Blob{}).Where("owner = ? AND user_id = ?", owner, user).Pluck("id", &all).Error
	if err != nil {
		return err
	}
	for blobs := range slices.Chunk(all, firstRows) {
		var removed core.Purged
		err := r.retryTx(ctx, func(tx *gorm.DB) error {
			removed = core.Purged{}
			res := tx.Where("blob_id IN ?", blobs).Delete(&models.BlobReference{})
			if res.Error != nil {
				return res.Error
			}
			removed.Remove("blob_references", res.RowsAffected)
			return removeAndCountBlobs(tx, owner, blobs, &removed)
		})
		if err != nil {
			return err
		}
		gone.Add(removed)
	}
	return nil
}

// removeAndCountBlobs removes those of the blobs without references, and counts them.
func removeAndCountBlobs(tx *gorm.DB, owner string, blobs []models.Ref, gone *core.Purged) error {
	swept, err := removeBlobs(tx, owner, blobs)
	gone.Remove("blobs", int64(swept.Blobs))
	gone.Remove("blob_contents", int64(swept.Contents))
	return err
}
