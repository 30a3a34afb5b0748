package repositories

import (
	"context"
	"errors"
	"slices"
	"time"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// refer notes which blobs a message has among its parts, so that they stay as long
// as it does. A blob that the session's owner does not have is ErrNotFound.
func (j *journal) refer(m core.Message) error {
	var ids []core.BlobID
	for _, p := range m.Parts {
		if p.BlobID == "" || slices.Contains(ids, p.BlobID) {
			continue
		}
		if err := known("blob", p.BlobID); err != nil {
			return err
		}
		ids = append(ids, p.BlobID)
	}
	if len(ids) == 0 {
		return nil
	}
	err := j.tx.Exec(`INSERT INTO blob_references (message_id, blob_id, session_id, owner)
		SELECT @m, id, @s, owner FROM blobs WHERE id IN @b AND owner = @o ON CONFLICT DO NOTHING`,
		map[string]any{"m": m.ID, "s": j.session.ID, "b": ids, "o": j.session.Owner}).Error
	if err != nil {
		return err
	}
	var there []models.Ref
	if err := j.tx.Model(&models.BlobReference{}).Where("message_id = ?", m.ID).Pluck("blob_id", &there).Error; err != nil {
		return err
	}
	for _, id := range ids {
		if !slices.Contains(there, models.Ref(id)) {
			return notFound("blob", id)
		}
	}
	return nil
}

// unrefer drops what the messages refer to. A blob that nothing else refers to goes
// at once: its author wants it gone.
func (j *journal) unrefer(messages []models.Ref) error {
	var blobs []models.Ref
	of := j.tx.Model(&models.BlobReference{}).Where("message_id IN ?", messages)
	if err := of.Distinct("blob_id").Pluck("blob_id", &blobs).Error; err != nil || len(blobs) == 0 {
		return err
	}
	if err := j.tx.Where("message_id IN ?", messages).Delete(&models.BlobReference{}).Error; err != nil {
		return err
	}
	_, err := removeBlobs(j.tx, j.session.Owner, blobs)
	return err
}

// copyReferences makes the copies in a fork refer to what their originals do.
func (j *journal) copyReferences() error {
	return j.tx.Exec(`INSERT INTO blob_references (message_id, blob_id, session_id, owner)
		SELECT m.id, r.blob_id, m.session_id, r.owner FROM messages m JOIN blob_references r ON r.message_id = m.origin_id
		WHERE m.session_id = ?`, j.session.ID).Error
}

// sweepBatch is how many blobs one transaction removes at most.
const sweepBatch = 500

// Sweep removes the blobs that nothing refers to and that were uploaded last before
// the time given.
func (r *Blobs) Sweep(ctx context.Context, before time.Time) (core.SweptBlobs, error) {
	var total core.SweptBlobs
	var owners []string
	orphans := func(db *gorm.DB) *gorm.DB { return db.Scopes(unreferenced).Where("uploaded_at < ?", before) }
	err := r.db.WithContext(ctx).Model(&models.Blob{}).Scopes(orphans).Distinct("owner").Pluck("owner", &owners).Error
	if err != nil {
		return total, failure(err, "blob", "")
	}
	for _, owner := range owners {
		swept, err := r.sweep(ctx, owner, orphans)
		total.Blobs += swept.Blobs
		total.Bytes += swept.Bytes
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// sweep is Sweep for one owner.
func (r *Blobs) sweep(ctx context.Context, owner string, orphans func(*gorm.DB) *gorm.DB) (core.SweptBlobs, error) {
	var total core.SweptBlobs
	for {
		var found []models.Ref
		var swept core.SweptBlobs
		err := inTx(ctx, r.db, func(tx *gorm.DB) error {
			err := tx.Model(&models.Blob{}).Scopes(orphans).Where("owner = ?", owner).Order("id").Limit(sweepBatch).Pluck("id", &found).Error
			if err != nil || len(found) == 0 {
				return err
			}
			swept, err = removeBlobs(tx, owner, found)
			return err
		})
		total.Blobs += swept.Blobs
		total.Bytes += swept.Bytes
		err = failure(err, "blob", owner)
		if errors.Is(err, core.ErrConflict) {
			return total, nil // a message came to refer to one: the next sweep does the others
		}
		if err != nil || len(found) < sweepBatch {
			return total, err
		}
	}
}

// unreferenced narrows a question about blobs to those that no message has.
func unreferenced(db *gorm.DB) *gorm.DB {
	return db.Where("NOT EXISTS (SELECT 1 FROM blob_references r WHERE r.blob_id = blobs.id)")
}

// removeBlobs removes those of the owner's blobs that nothing refers to, with the
// content that no other blob has.
func removeBlobs(tx *gorm.DB, owner string, ids []models.Ref) (core.SweptBlobs, error) {
	var swept core.SweptBlobs
	if err := lockBlobs(tx, owner); err != nil {
		return swept, err
	}
	var hashes []string
	of := tx.Model(&models.Blob{}).Scopes(unreferenced).Where("owner = ? AND id IN ?", owner, ids)
	if err := of.Distinct("sha256").Pluck("sha256", &hashes).Error; err != nil || len(hashes) == 0 {
		return swept, err
	}
	gone := tx.Scopes(unreferenced).Where("owner = ? AND id IN ?", owner, ids).Delete(&models.Blob{})
	if gone.Error != nil {
		return swept, gone.Error
	}
	const unused = "owner = ? AND sha256 IN ? AND NOT EXISTS (SELECT 1 FROM blobs b WHERE b.owner = blob_contents.owner AND b.sha256 = blob_contents.sha256)"
	err := tx.Model(&models.BlobContent{}).Select("COALESCE(SUM(size), 0)").Where(unused, owner, hashes).Scan(&swept.Bytes).Error
	if err != nil {
		return swept, err
	}
	swept.Blobs = int(gone.RowsAffected)
	return swept, tx.Where(unused, owner, hashes).Delete(&models.BlobContent{}).Error
}
