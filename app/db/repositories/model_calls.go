package repositories

import (
	"context"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// ModelCalls reads the books; Runs.Write and Sessions.ApplyContext keep them. Safe
// for concurrent use.
type ModelCalls struct {
	db *gorm.DB
}

// NewModelCalls returns the model calls in db.
func NewModelCalls(db *gorm.DB) *ModelCalls { return &ModelCalls{db: db} }

// SessionUsage returns what all model calls of a session cost, summaries included.
func (r *ModelCalls) SessionUsage(ctx context.Context, scope core.Scope, session core.SessionID) (core.Usage, error) {
	if err := known("session", session); err != nil {
		return core.Usage{}, err
	}
	db := r.db.WithContext(ctx)
	if err := mustSee(db, scope, session); err != nil {
		return core.Usage{}, err
	}
	var sum models.Usage
	err := db.Model(&models.ModelCall{}).Where("session_id = ?", session).Select(
		"CAST(COALESCE(SUM(input_tokens), 0) AS bigint) AS input_tokens, " +
			"CAST(COALESCE(SUM(output_tokens), 0) AS bigint) AS output_tokens, " +
			"CAST(COALESCE(SUM(reasoning_tokens), 0) AS bigint) AS reasoning_tokens, " +
			"CAST(COALESCE(SUM(cache_read_tokens), 0) AS bigint) AS cache_read_tokens, " +
			"CAST(COALESCE(SUM(cache_write_tokens), 0) AS bigint) AS cache_write_tokens").Scan(&sum).Error
	return core.Usage(sum), failure(err, "usage of session", session)
}
