package repositories

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Reports returns the context reports of the newest runs of a session, oldest first, and how many
// runs are older than these.
func (r *Runs) Reports(ctx context.Context, tenant core.Tenant, session core.SessionID, limit int) ([]core.RunReport, int, error) {
	var rows []struct {
		ID        string
		QueueSeq  int64
		Seq       int64
		CreatedAt time.Time
		Context   models.JSON
	}
	runs := byID(ctx, r.db, "session", session).Model(&models.Run{}).Scopes(withinSession(tenant, session)).Session(&gorm.Session{})
	err := runs.Select("id, queue_seq, created_at, context, COALESCE((SELECT m.seq FROM messages m WHERE m.id = runs.user_message_id), 0) AS seq").
		Where("context IS NOT NULL").Order("queue_seq DESC").Limit(limit).Scan(&rows).Error
	if err != nil || len(rows) == 0 {
		return nil, 0, wrapError(err, "runs of session", session)
	}
	slices.Reverse(rows)
	reports := make([]core.RunReport, len(rows))
	for i, row := range rows {
		reports[i] = core.RunReport{RunID: core.RunID(row.ID), Seq: row.Seq, At: row.CreatedAt.UTC()}
		if err := json.Unmarshal(row.Context, &reports[i].Report); err != nil {
			return nil, 0, fmt.Errorf("context report of run %s: %w", row.ID, err)
		}
	}
	var older int64
	if len(rows) == limit {
		err = runs.Where("queue_seq < ?", rows[0].QueueSeq).Count(&older).Error
	}
	return reports, int(older), wrapError(err, "runs of session", session)
}
