package repositories

import (
	"context"
	"slices"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Blobs returns the files that messages of the sessions refer to or that were
// uploaded for one of them, and those of the user if one is named.
func (r *Purges) Blobs(ctx context.Context, ids []core.SessionID, owner, user string) ([]core.BlobID, error) {
	var all []core.BlobID
	db := r.db.WithContext(ctx)
	if user != "" {
		if err := db.Model(&models.Blob{}).Where("owner = ? AND user_id = ?", owner, user).Pluck("id", &all).Error; err != nil {
			return nil, failure(err, "files of user", user)
		}
	}
	for part := range slices.Chunk(ids, purgeChunk) {
		var some []core.BlobID
		err := db.Raw("SELECT blob_id FROM blob_references WHERE session_id IN @s UNION SELECT id FROM blobs WHERE session_id IN @s",
			map[string]any{"s": part}).Scan(&some).Error
		if err != nil {
			return nil, failure(err, "files of session", part[0])
		}
		all = append(all, some...)
	}
	return all, nil
}

// purgeBlobs removes the blobs that the session's messages refer to, or that were
// uploaded for it, unless another session refers to them: those stay, and belong to
// no session.
func (j *journal) purgeBlobs(gone *core.Purged) error {
	id := j.session.ID
	var blobs []models.Ref
	err := j.tx.Raw("SELECT blob_id FROM blob_references WHERE session_id = @s UNION SELECT id FROM blobs WHERE session_id = @s",
		map[string]any{"s": id}).Scan(&blobs).Error
	if err != nil {
		return err
	}
	res := j.tx.Where("session_id = ?", id).Delete(&models.BlobReference{})
	if res.Error != nil {
		return res.Error
	}
	gone.Remove("blob_references", res.RowsAffected)
	err = j.tx.Model(&models.Blob{}).Where("session_id = ?", id).UpdateColumn("session_id", nil).Error
	if err != nil {
		return err
	}
	return countedBlobs(j.tx, j.session.Owner, blobs, gone)
}

// purgeUserBlobs removes the blobs that the user brought, also where messages of
// others refer to them: what is shown of them there is that they are gone.
func purgeUserBlobs(tx *gorm.DB, owner, user string, gone *core.Purged) error {
	var blobs []models.Ref
	err := tx.Model(&models.Blob{}).Where("owner = ? AND user_id = ?", owner, user).Pluck("id", &blobs).Error
	if err != nil {
		return err
	}
	for len(blobs) > 0 {
		part := blobs[:min(len(blobs), purgeChunk)]
		blobs = blobs[len(part):]
		res := tx.Where("blob_id IN ?", part).Delete(&models.BlobReference{})
		if res.Error != nil {
			return res.Error
		}
		gone.Remove("blob_references", res.RowsAffected)
		if err := countedBlobs(tx, owner, part, gone); err != nil {
			return err
		}
	}
	return nil
}

// countedBlobs removes those of the blobs that nothing refers to, and counts them.
func countedBlobs(tx *gorm.DB, owner string, blobs []models.Ref, gone *core.Purged) error {
	if len(blobs) == 0 {
		return nil
	}
	if err := lockBlobs(tx, owner); err != nil {
		return err
	}
	before, err := countRows(tx, "blob_contents", "owner = ?", owner)
	if err != nil {
		return err
	}
	swept, err := removeBlobs(tx, owner, blobs)
	if err != nil {
		return err
	}
	after, err := countRows(tx, "blob_contents", "owner = ?", owner)
	gone.Remove("blobs", int64(swept.Blobs))
	gone.Remove("blob_contents", before-after)
	return err
}
