package repositories

import (
	"context"
	"errors"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// linkBlobs records which blobs a message has among its parts, so that they exist as long
// as it does. A blob that the session's owner does not have is ErrNotFound.
func (stx *sessionTx) linkBlobs(m core.Message) error {
	var ids []core.BlobID
	for _, p := range m.Parts {
		if p.BlobID == "" || slices.Contains(ids, p.BlobID) {
			continue
		}
		if err := requireID("blob", p.BlobID); err != nil {
			return err
		}
		ids = append(ids, p.BlobID)
	}
	if len(ids) == 0 {
		return nil
	}
	err := stx.tx.Exec(`INSERT INTO blob_references (message_id, blob_id, session_id, owner)
		SELECT @m, id, @s, owner FROM blobs WHERE id IN @b AND owner = @o ORDER BY id ON CONFLICT DO NOTHING`,
		map[string]any{"m": m.ID, "s": stx.session.ID, "b": ids, "o": stx.session.Owner}).Error
	if err == nil {
		err = stx.tx.Exec("UPDATE blobs SET unreferenced = false WHERE id IN ? AND owner = ? AND unreferenced", ids, stx.session.Owner).Error
	}
	if err != nil {
		return err
	}
	var there []models.Ref
	if err := stx.tx.Model(&models.BlobReference{}).Where("message_id = ?", m.ID).Pluck("blob_id", &there).Error; err != nil {
		return err
	}
	for _, id := range ids {
		if !slices.Contains(there, models.Ref(id)) {
			return notFound("blob", id)
		}
	}
	return nil
}

// unlinkBlobs drops the messages' references. A blob without other references is removed
// immediately: its author deletes it.
func (stx *sessionTx) unlinkBlobs(messages []core.MessageID) error {
	var blobs []models.Ref
	of := stx.tx.Model(&models.BlobReference{}).Where("message_id IN ?", messages)
	if err := of.Distinct("blob_id").Pluck("blob_id", &blobs).Error; err != nil || len(blobs) == 0 {
		return err
	}
	if err := stx.tx.Where("message_id IN ?", messages).Delete(&models.BlobReference{}).Error; err != nil {
		return err
	}
	_, err := removeBlobs(stx.tx, stx.session.Owner, blobs)
	return err
}

// releaseUnsentFiles is releaseFiles for the message of a run that never started.
func (stx *sessionTx) releaseUnsentFiles(run core.Run) error {
	if run.Input.Regenerate { // its message is in the log
		return nil
	}
	return stx.releaseFiles([]core.MessageID{run.UserMessageID})
}

// releaseFiles drops the references of messages that do not enter the log. Their author may
// still send the files with other messages; a sweep removes unreferenced ones.
func (stx *sessionTx) releaseFiles(messages []core.MessageID) error {
	err := stx.tx.Exec("UPDATE blobs SET unreferenced = true WHERE id IN (SELECT blob_id FROM blob_references WHERE message_id IN ?)", messages).Error
	if err == nil {
		err = stx.tx.Where("message_id IN ?", messages).Delete(&models.BlobReference{}).Error
	}
	return err
}

// Sweep removes the unreferenced blobs whose last upload is before the given time.
func (r *Blobs) Sweep(ctx context.Context, before time.Time) (core.SweptBlobs, error) {
	var total core.SweptBlobs
	orphans := gorm.Expr(unreferencedSQL+" AND blobs.unreferenced AND uploaded_at < ?", before)
	owners, err := scan[[]string](r.db.WithContext(ctx).Model(&models.Blob{}).Where(orphans).Distinct("owner"))
	for _, owner := range owners {
		for n := stepRows; n == stepRows && err == nil; {
			var swept core.SweptBlobs
			err = wrapError(inTx(ctx, r.db, func(tx *gorm.DB) error {
				found, err := scan[[]models.Ref](tx.Model(&models.Blob{}).Where(orphans).Where("owner = ?", owner).Order("id").Limit(stepRows).Select("id"))
				if n = len(found); err == nil && n > 0 {
					swept, err = removeBlobs(tx, owner, found)
				}
				return err
			}), "blob", owner)
			if err == nil {
				total.Blobs, total.Bytes = total.Blobs+swept.Blobs, total.Bytes+swept.Bytes
			}
		}
		if errors.Is(err, core.ErrConflict) { // a message now refers to one; the next sweep removes the others
			err = nil
		}
		if err != nil {
			break
		}
	}
	return total, wrapError(err, "blob", "")
}

// unreferencedSQL is the condition for blobs that no message refers to.
const unreferencedSQL = "NOT EXISTS (SELECT 1 FROM blob_references r WHERE r.blob_id = blobs.id)"

// removeBlobs removes those of the owner's blobs without references, with the content that
// no other blob has.
func removeBlobs(tx *gorm.DB, owner string, ids []models.Ref) (core.SweptBlobs, error) {
	var swept core.SweptBlobs
	if err := lockBlobs(tx, owner); err != nil {
		return swept, err
	}
	var hashes []string
	of := tx.Model(&models.Blob{}).Where(unreferencedSQL).Where("owner = ? AND id IN ?", owner, ids)
	if err := of.Distinct("sha256").Pluck("sha256", &hashes).Error; err != nil || len(hashes) == 0 {
		return swept, err
	}
	var gone []models.Blob
	err := tx.Clauses(clause.Returning{Columns: []clause.Column{{Name: "id"}, {Name: "user_id"}, {Name: "size"}}}).Where(unreferencedSQL).
		Where("owner = ? AND id IN ?", owner, ids).Delete(&gone).Error
	if err == nil {
		err = eraseAnswers(tx, owner, idsOf(gone, func(b models.Blob) core.BlobID { return b.ID }))
	}
	if err != nil {
		return swept, err
	}
	const unused = "owner = ? AND sha256 IN ? AND NOT EXISTS (SELECT 1 FROM blobs b WHERE b.owner = blob_contents.owner AND b.sha256 = blob_contents.sha256)"
	var contents []models.BlobContent
	err = tx.Clauses(clause.Returning{Columns: []clause.Column{{Name: "size"}}}).Where(unused, owner, hashes).Delete(&contents).Error
	swept.Blobs = len(gone)
	for _, c := range contents {
		swept.Bytes += c.Size
	}
	if err != nil {
		return swept, err
	}
	return swept, countBlobs(tx, owner, swept, gone, -1)
}
