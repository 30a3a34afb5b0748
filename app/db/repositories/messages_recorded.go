package repositories

import (
	"context"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// SetRecorded gives messages of the log, by their seq, the authors and times of a recorded
// conversation that was replayed; empty ones change nothing. Search counts both, so it indexes
// the messages again.
func (r *Messages) SetRecorded(ctx context.Context, tenant core.Tenant, session core.SessionID, recorded []core.Message) error {
	err := changeLog(ctx, r.db, session, func(stx *sessionTx) error {
		indexed, err := stx.lockIndex()
		if err != nil {
			return err
		}
		for _, m := range recorded {
			changes := map[string]any{}
			if m.Author != "" {
				changes["author"] = m.Author
			}
			if !m.CreatedAt.IsZero() {
				changes["created_at"] = m.CreatedAt
			}
			if len(changes) == 0 {
				continue
			}
			if err := stx.tx.Model(&models.Message{}).Where("session_id = ? AND seq = ?", session, m.Seq).UpdateColumns(changes).Error; err != nil {
				return err
			}
			indexed = min(indexed, m.Seq-1)
		}
		err = stx.tx.Model(&models.SessionReader{SessionID: stx.session.ID, Reader: models.ReaderSearch}).UpdateColumn("seq", indexed).Error
		if err != nil {
			return err
		}
		return stx.tx.Model(&models.Session{}).Where("id = ?", session).UpdateColumn("indexed_seq", indexed).Error
	}, visibleTo(tenant))
	return wrapError(err, "session", session)
}
