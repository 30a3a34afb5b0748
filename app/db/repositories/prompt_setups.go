package repositories

import (
	"context"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// maxSetups bounds the setups of a session: it keeps the newest.
const maxSetups = 16

// PromptSetups reads the system prompts and tools to which thoughts and native summaries of sessions are
// bound; Runs.Write and Sessions.ApplyContext store them. Safe for concurrent use.
type PromptSetups struct{ db *gorm.DB }

// NewPromptSetups returns the setups in db.
func NewPromptSetups(db *gorm.DB) *PromptSetups { return &PromptSetups{db: db} }

// Find returns those of the setups that are stored with the session, in no order.
func (r *PromptSetups) Find(ctx context.Context, tenant core.Tenant, session core.SessionID, hashes []string) ([]core.PromptSetup, error) {
	db := byID(ctx, r.db, "session", session)
	rows, err := findIn[models.PromptSetup](db.Where("session_id = ?", session), "hash", hashes)
	if err != nil {
		return nil, wrapError(err, "system prompts of session", session)
	}
	if len(rows) == 0 || rows[0].Owner != tenant.Owner || tenant.User != "" {
		if err := requireVisible(db, tenant, session); err != nil {
			return nil, err
		}
	}
	return mapRows(rows, models.PromptSetup.Core), nil
}

// storeSetup stores a setup, unless the session has it.
func (stx *sessionTx) storeSetup(s core.PromptSetup) error {
	row := models.PromptSetup{
		SessionID: string(stx.session.ID), Hash: s.Hash, Owner: stx.session.Owner, SystemPrompt: s.SystemPrompt, ToolUsage: s.ToolUsage,
		Tools: string(s.Tools), CreatedAt: core.Now(),
	}
	inserted := stx.tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&row)
	if inserted.Error != nil || inserted.RowsAffected == 0 {
		return inserted.Error
	}
	var old []models.PromptSetup
	newest := stx.tx.Model(&models.PromptSetup{}).Select("hash").Where("session_id = ?", stx.session.ID).Order("created_at DESC, hash").Limit(maxSetups)
	err := stx.tx.Clauses(clause.Returning{}).Where("session_id = ? AND hash NOT IN (?)", stx.session.ID, newest).Delete(&old).Error
	addBytes(stx, 1, []models.PromptSetup{row})
	addBytes(stx, -1, old)
	return err
}
