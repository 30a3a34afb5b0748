package repositories

import (
	"context"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// SlackInstallations stores where the Slack app is installed. Safe for concurrent use.
type SlackInstallations struct {
	db *gorm.DB
}

// NewSlackInstallations returns the installations in db.
func NewSlackInstallations(db *gorm.DB) *SlackInstallations { return &SlackInstallations{db: db} }

// Save stores an installation, in the place of an earlier one of the team.
func (r *SlackInstallations) Save(ctx context.Context, i core.SlackInstallation) error {
	row := models.SlackInstallation(i)
	err := r.db.WithContext(ctx).Clauses(clause.OnConflict{UpdateAll: true}).Create(&row).Error
	return wrapError(err, "Slack installation", i.Team)
}

// List returns all installations, also the revoked ones, ordered by team.
func (r *SlackInstallations) List(ctx context.Context) ([]core.SlackInstallation, error) {
	list, err := findAll(r.db.WithContext(ctx).Order("team"), infallible(models.SlackInstallation.Core))
	return list, wrapError(err, "Slack installations", "")
}

// Find returns the active installation of the team; ErrNotFound if there is none.
func (r *SlackInstallations) Find(ctx context.Context, team string) (core.SlackInstallation, error) {
	var row models.SlackInstallation
	err := r.db.WithContext(ctx).Where("team = ? AND state = ?", team, core.SlackInstalled).Take(&row).Error
	return row.Core(), wrapError(err, "Slack installation", team)
}

// Revoke marks an installation revoked and removes its tokens, unless it has other tokens by now.
func (r *SlackInstallations) Revoke(ctx context.Context, i core.SlackInstallation) error {
	err := r.db.WithContext(ctx).Model(&models.SlackInstallation{}).Where("team = ? AND tokens = ? AND state = ?", i.Team, i.Tokens, core.SlackInstalled).
		UpdateColumns(map[string]any{"state": core.SlackRevoked, "tokens": nil, "updated_at": core.Now()}).Error
	return wrapError(err, "Slack installation", i.Team)
}
