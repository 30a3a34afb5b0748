package repositories

import (
	"context"
	"errors"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Deletions stores which sessions and users are to be deleted permanently. A finished
// deletion is kept for a while, without the user's name. Safe for concurrent use, by any
// number of replicas.
type Deletions struct{ db *gorm.DB }

// NewDeletions returns the deletions in db.
func NewDeletions(db *gorm.DB) *Deletions { return &Deletions{db: db} }

// Create stores a deletion that is due immediately. If the same target has an unfinished
// one, it returns that.
func (r *Deletions) Create(ctx context.Context, d core.Deletion) (core.Deletion, error) {
	row := models.Deletion{Deletion: d, Target: d.Target()}
	for {
		err := r.db.WithContext(ctx).Create(&row).Error
		if !errors.Is(err, gorm.ErrDuplicatedKey) {
			return row.Core(), wrapError(err, "deletion", d.ID)
		}
		open, err := findNewest(r.db.WithContext(ctx).Where("owner = ? AND kind = ? AND target = ? AND finished_at IS NULL", d.Owner, row.Kind, row.Target))
		if !isNotFound(err) { // otherwise it has finished meanwhile
			return open, err
		}
	}
}

// Get returns a deletion of the scope; with a user, one of the user's data.
func (r *Deletions) Get(ctx context.Context, tenant core.Tenant, id core.DeletionID) (core.Deletion, error) {
	return findNewest(byID(ctx, r.db, "deletion", id).Where(ofTenant(tenant)).Where("id = ?", id))
}

// OfSession returns the newest deletion of the session.
func (r *Deletions) OfSession(ctx context.Context, tenant core.Tenant, id core.SessionID) (core.Deletion, error) {
	return findNewest(r.db.WithContext(ctx).Where(ofTenant(tenant)).Where("kind = ? AND target = ?", core.DeleteSession, id))
}

// ofTenant is inScope for deletions, which have no user's name.
func ofTenant(tenant core.Tenant) clause.Expr {
	if tenant.User == "" {
		return inScope(tenant)
	}
	return gorm.Expr("owner = ? AND user_hash = ?", tenant.Owner, core.SecretHash(tenant.User))
}

// findNewest returns the newest deletion that matches.
func findNewest(db *gorm.DB) (core.Deletion, error) {
	var row models.Deletion
	err := db.Order("created_at DESC, id DESC").Limit(1).Take(&row).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return core.Deletion{}, core.Errorf(core.ErrNotFound, "this deletion does not exist")
	}
	return row.Core(), wrapError(err, "deletion", "")
}

// Claim leases a deletion that is due, or that an earlier process of the worker's replica
// held. ErrNotFound when there is none.
func (r *Deletions) Claim(ctx context.Context, worker string) (core.Deletion, error) {
	row, err := claimDue[models.Deletion](ctx, r.db, worker, core.RunLease, "")
	return row.Core(), wrapError(err, "deletion for worker", worker)
}

// Renew renews the lease and stores how many rows are left. ErrStale when the lease was
// lost.
func (r *Deletions) Renew(ctx context.Context, d core.Deletion) error {
	return updateLeased[models.Deletion](r.db.WithContext(ctx), "deletion", d.ID, d.Lease, map[string]any{"rows_left": d.RowsLeft, "due_at": gorm.Expr(clockSQL(r.db, core.RunLease))})
}

// SavePlan stores what is to be removed. ErrStale when the lease was lost.
func (r *Deletions) SavePlan(ctx context.Context, d core.Deletion) error {
	return updateLeased[models.Deletion](r.db.WithContext(ctx), "deletion", d.ID, d.Lease, map[string]any{"plan": models.EncodeJSON(d.Plan), "rows_total": d.RowsTotal, "rows_left": d.RowsLeft})
}

// Retry ends the lease after a failed attempt, and stores the error. ErrStale when the
// lease was lost.
func (r *Deletions) Retry(ctx context.Context, d core.Deletion, wait time.Duration) error {
	return updateLeased[models.Deletion](r.db.WithContext(ctx), "deletion", d.ID, d.Lease, map[string]any{"error": d.Error, "lease_owner": "", "due_at": gorm.Expr(clockSQL(r.db, wait))})
}

// Finish stores the report and clears the user's name. ErrStale when the lease was lost.
func (r *Deletions) Finish(ctx context.Context, d core.Deletion) error {
	return updateLeased[models.Deletion](r.db.WithContext(ctx), "deletion", d.ID, d.Lease, map[string]any{
		"report": models.EncodeJSON(d.Report), "finished_at": core.Now(), "rows_left": d.Report.Left(), "rows_total": d.RowsTotal,
		"user_id": "", "plan": nil, "error": "", "lease_owner": "",
	})
}

// Sweep removes deletions that finished longer than keep ago.
func (r *Deletions) Sweep(ctx context.Context, keep time.Duration) error {
	err := r.db.WithContext(ctx).Where("finished_at <= " + clockBoundSQL(r.db, -keep)).Delete(&models.Deletion{}).Error
	return wrapError(err, "deletions", "that are done")
}
