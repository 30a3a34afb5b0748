package repositories

import (
	"context"
	"time"

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
	row := models.SlackInstallationFrom(i)
	err := r.db.WithContext(ctx).Clauses(clause.OnConflict{UpdateAll: true}).Create(&row).Error
	return wrapError(err, "Slack installation", i.Team)
}

// List returns all installations, also the revoked ones, ordered by team.
func (r *SlackInstallations) List(ctx context.Context) ([]core.SlackInstallation, error) {
	var rows []models.SlackInstallation
	if err := r.db.WithContext(ctx).Order("team").Find(&rows).Error; err != nil {
		return nil, wrapError(err, "Slack installations", "")
	}
	return mapRows(rows, infallible(models.SlackInstallation.Core))
}

// Find returns the active installation of the team, else that of its organization; ErrNotFound
// if there is none.
func (r *SlackInstallations) Find(ctx context.Context, enterprise, team string) (core.SlackInstallation, error) {
	var row models.SlackInstallation
	err := r.db.WithContext(ctx).Where("team IN ? AND state = ?", []string{team, enterprise}, core.SlackInstalled).
		Order("team DESC").Take(&row).Error // T… before E…
	return row.Core(), wrapError(err, "Slack installation", team)
}

// withTokens narrows a query to the installation while it is active and has the tokens.
func (r *SlackInstallations) withTokens(ctx context.Context, team string, tokens []byte) *gorm.DB {
	return r.db.WithContext(ctx).Model(&models.SlackInstallation{}).Where("team = ? AND tokens = ? AND state = ?", team, tokens, core.SlackInstalled)
}

// Lease leases an installation to rotate its tokens; false if another caller has the lease, or
// the installation has other tokens by now.
func (r *SlackInstallations) Lease(ctx context.Context, i core.SlackInstallation, d time.Duration) (bool, error) {
	res := r.withTokens(ctx, i.Team, i.Tokens).Where("(lease_until IS NULL OR lease_until <= "+clockBoundSQL(r.db, 0)+")").
		UpdateColumn("lease_until", gorm.Expr(clockSQL(r.db, d)))
	return res.RowsAffected > 0, wrapError(res.Error, "Slack installation", i.Team)
}

// Rotate replaces the tokens, their expiry and the scopes, and ends the lease; ErrStale if the
// installation has other tokens than old by now.
func (r *SlackInstallations) Rotate(ctx context.Context, old []byte, i core.SlackInstallation) error {
	err := retryDelays(func() error {
		res := r.withTokens(ctx, i.Team, old).UpdateColumns(map[string]any{
			"tokens": i.Tokens, "expires_at": i.ExpiresAt, "scopes": i.Scopes, "lease_until": nil, "updated_at": core.Now(),
		})
		if res.Error == nil && res.RowsAffected == 0 {
			return core.Errorf(core.ErrStale, "the Slack installation of %s has other tokens by now", i.Team)
		}
		return res.Error
	})
	return wrapError(err, "Slack installation", i.Team)
}

// Revoke marks an installation revoked and removes its tokens, unless it has other tokens by now.
func (r *SlackInstallations) Revoke(ctx context.Context, i core.SlackInstallation) error {
	err := r.withTokens(ctx, i.Team, i.Tokens).UpdateColumns(map[string]any{
		"state": core.SlackRevoked, "tokens": nil, "expires_at": nil, "lease_until": nil, "updated_at": core.Now(),
	}).Error
	return wrapError(err, "Slack installation", i.Team)
}
