package repositories

import (
	"context"
	"maps"
	"slices"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Answers removes the stored answers that mention one of the marks, or with dry only counts
// them.
func (r *Purges) Answers(ctx context.Context, m core.PurgeMarks, dry bool) (int64, error) {
	mentions := slices.Sorted(maps.Keys(m.IDs))
	if m.User != "" {
		mentions = append(mentions, mentionOfUser(m.User))
	}
	found := map[models.IdempotencyMention]bool{}
	var removed int64
	for part := range slices.Chunk(mentions, maxIDs) {
		db := r.db.WithContext(ctx)
		which := db.Model(&models.IdempotencyMention{}).Select("owner, key").Where("mention IN ?", part)
		if m.Owner != "" {
			which = which.Where("owner = ?", m.Owner)
		}
		// A request without an answer or a result checks what still exists when it stores
		// them.
		kept := db.Where("(status IS NOT NULL OR result <> '') AND (owner, key) IN (?)", which)
		if !dry {
			res := kept.Delete(&models.IdempotencyKey{})
			if res.Error != nil {
				return removed, wrapError(res.Error, "idempotency keys of", m.Owner)
			}
			removed += res.RowsAffected
			continue
		}
		var keys []models.IdempotencyKey
		if err := kept.Select("owner", "key").Find(&keys).Error; err != nil {
			return 0, wrapError(err, "idempotency keys of", m.Owner)
		}
		for _, k := range keys {
			found[models.IdempotencyMention{Owner: k.Owner, Key: k.Key}] = true
		}
	}
	return removed + int64(len(found)), nil
}
