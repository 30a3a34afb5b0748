package repositories

import (
	"context"
	"fmt"
	"slices"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// addBytes adds what the rows of the session count; with the sign -1 it takes that off.
func addBytes[T interface{ StoredBytes() int64 }](stx *sessionTx, sign int64, rows []T) {
	for _, row := range rows {
		stx.session.StoredBytes += sign * row.StoredBytes()
	}
}

// messageBytesSQL is the size of a message's texts and metadata.
func messageBytesSQL(db *gorm.DB) string {
	cast := ""
	if isPostgres(db) {
		cast = "::text"
	}
	return fmt.Sprintf("octet_length(content) + COALESCE(octet_length(parts%[1]s), 0) + COALESCE(octet_length(tool_calls%[1]s), 0) + COALESCE(octet_length(metadata%[1]s), 0) + COALESCE(octet_length(feedback%[1]s), 0)", cast)
}

// countStored returns what messages of the session count; of all of them without ids.
func (stx *sessionTx) countStored(ids []core.MessageID) (int64, error) {
	sum := stx.tx.Model(&core.Message{}).Where("session_id = ?", stx.session.ID).
		Select("COALESCE(SUM(? + "+messageBytesSQL(stx.tx)+" + COALESCE("+revisionBytesSQL+", 0)), 0)", core.StoredRow)
	var total, n int64
	if len(ids) == 0 {
		err := sum.Scan(&total).Error
		return total, err
	}
	for part := range slices.Chunk(ids, maxIDs) {
		if err := sum.Session(&gorm.Session{}).Where("id IN ?", part).Scan(&n).Error; err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// addStored changes what the messages of the session count by what these do now and did before.
func (stx *sessionTx) addStored(ids []core.MessageID, before int64) error {
	n, err := stx.countStored(ids)
	stx.session.StoredBytes += n - before
	return err
}

// StoredBytes returns the bytes of all sessions in the scope with all that their messages, summaries, instructions
// and metadata have, and of the memories.
func (r *Sessions) StoredBytes(ctx context.Context, tenant core.Tenant) (int64, error) {
	metadata := "COALESCE(octet_length(metadata), 0)"
	if isPostgres(r.db) {
		metadata = "COALESCE(octet_length(metadata::text), 0)"
	}
	sum := func(of any, where, row string, rows int) (n int64, err error) {
		list := r.db.WithContext(ctx).Model(of).Where("owner = ? AND "+where, tenant.Owner)
		if tenant.User != "" {
			list = list.Where("user_id = ?", tenant.User)
		}
		err = list.Select("COALESCE(SUM(? + "+row+" + "+metadata+"), 0)", rows*core.StoredRow).Scan(&n).Error
		return n, err
	}
	total, err := sum(&core.Memory{}, "true", "octet_length(content) + COALESCE(octet_length(embedding), 0)", 1)
	if err != nil {
		return 0, wrapError(err, "memories of", tenant.Owner)
	}
	for _, where := range []string{"archived_at IS NULL AND NOT temporary", "archived_at IS NOT NULL AND NOT temporary", "temporary"} { // as the indexes have it
		n, err := sum(&models.Session{}, where, "stored_bytes + octet_length(instructions)", 2)
		if err != nil {
			return 0, wrapError(err, "sessions of", tenant.Owner)
		}
		total += n
	}
	return total, nil
}
