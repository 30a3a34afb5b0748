package repositories

import (
	"context"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// OwnerWebhooks stores the default webhooks of owners. Safe for concurrent use.
type OwnerWebhooks struct{ db *gorm.DB }

// NewOwnerWebhooks returns the default webhooks in db.
func NewOwnerWebhooks(db *gorm.DB) *OwnerWebhooks { return &OwnerWebhooks{db: db} }

// Get returns the owner's default webhook; ErrNotFound if there is none.
func (r *OwnerWebhooks) Get(ctx context.Context, owner string) (core.Webhook, error) {
	hook, err := ownerWebhook(r.db.WithContext(ctx), owner)
	if err == nil && hook == nil {
		err = core.Errorf(core.ErrNotFound, "no default webhook is set")
	}
	if err != nil {
		return core.Webhook{}, wrapError(err, "webhook of", owner)
	}
	return *hook, nil
}

// Set replaces the owner's default webhook.
func (r *OwnerWebhooks) Set(ctx context.Context, owner string, hook core.Webhook) error {
	row := models.OwnerWebhook{Owner: owner, Webhook: models.WebhookFrom(&hook), UpdatedAt: core.Now()}
	err := r.db.WithContext(ctx).Clauses(clause.OnConflict{UpdateAll: true}).Create(&row).Error
	return wrapError(err, "webhook of", owner)
}

// Delete removes the owner's default webhook, if there is one.
func (r *OwnerWebhooks) Delete(ctx context.Context, owner string) error {
	err := r.db.WithContext(ctx).Where("owner = ?", owner).Delete(&models.OwnerWebhook{}).Error
	return wrapError(err, "webhook of", owner)
}

// ownerWebhook returns the owner's default webhook; nil = there is none.
func ownerWebhook(db *gorm.DB, owner string) (*core.Webhook, error) {
	row, err := findFirst[models.OwnerWebhook](db.Where("owner = ?", owner))
	if err != nil || row == nil {
		return nil, err
	}
	return row.Core(), nil
}
