package repositories

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// TakeOver leases to the worker running runs that nobody works on: those whose
// lease is past by the database's clock and, with all, also those that are leased
// to the worker's replica, which is what a process finds of its former life.
// Each gets its next attempt, so that writes of the former one are refused; the
// partial text of the former stays until the new one saves its own. Of
// several replicas that take over at once each gets other runs. The oldest runs
// come first, at most limit.
func (r *Runs) TakeOver(ctx context.Context, worker string, all bool, limit int) ([]core.Run, error) {
	where, args := "lease_until IS NULL OR lease_until <= "+clockSQL(r.db, 0), []any{}
	if all {
		of, prefix := workersOf(worker)
		where, args = where+" OR "+of, prefix
	}
	rows, err := r.lease(ctx, leaseQuery{
		where: "status = 'running' AND (" + where + ")",
		args:  args, order: "created_at, id", limit: limit, skipLocked: true,
		set: "attempt = attempt + 1, lease_owner = ?, lease_until = " + clockSQL(r.db, Lease), values: []any{worker},
	})
	if err != nil {
		return nil, failure(err, "runs for worker", worker)
	}
	slices.SortFunc(rows, func(a, b models.Run) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return values(rows, models.Run.Core)
}

// workersOf is the condition that a lease is one of the worker's replica.
func workersOf(worker string) (where string, args []any) {
	prefix := core.WorkersOf(worker)
	return "substr(lease_owner || '/', 1, ?) = ?", []any{len(prefix), prefix}
}

// Renew lengthens the worker's leases of the runs, and returns those of them that
// are not the worker's any more: taken over, or ended. This is the heartbeat.
func (r *Runs) Renew(ctx context.Context, worker string, runs []core.RunID) (lost []core.RunID, err error) {
	if len(runs) == 0 {
		return nil, nil
	}
	rows, err := r.lease(ctx, leaseQuery{
		where: "status = 'running' AND lease_owner = ? AND id IN ?", args: []any{worker, runs},
		order: "id", limit: len(runs),
		set: "lease_until = " + clockSQL(r.db, Lease),
	})
	if err != nil {
		return nil, failure(err, "leases of worker", worker)
	}
	held := map[core.RunID]bool{}
	for _, row := range rows {
		held[core.RunID(row.ID)] = true
	}
	for _, id := range runs {
		if !held[id] {
			lost = append(lost, id)
		}
	}
	return lost, nil
}

// Release ends all leases of the worker now, so that others can take over its
// runs without waiting. What the worker still writes counts until they do.
func (r *Runs) Release(ctx context.Context, worker string) error {
	_, err := r.lease(ctx, leaseQuery{
		where: "status = 'running' AND lease_owner = ?", args: []any{worker},
		order: "id", limit: maxReleased,
		set: "lease_until = " + clockSQL(r.db, 0),
	})
	return failure(err, "leases of worker", worker)
}

// Yield ends the lease of a run that its attempt gives up, so that anybody can take it
// over without waiting. ErrStale if it is not that attempt's any more.
func (r *Runs) Yield(ctx context.Context, run core.RunID, attempt int) error {
	done := r.running(ctx).Where("id = ? AND attempt = ?", run, attempt).UpdateColumn("lease_until", gorm.Expr(clockSQL(r.db, 0)))
	if done.Error == nil && done.RowsAffected == 0 {
		return core.Errorf(core.ErrStale, "run %s belongs to another attempt, or has ended", run)
	}
	return failure(done.Error, "run", run)
}

// HandBack ends the worker's lease of one run now: see Release.
func (r *Runs) HandBack(ctx context.Context, worker string, run core.RunID) error {
	_, err := r.lease(ctx, leaseQuery{
		where: "status = 'running' AND lease_owner = ? AND id = ?", args: []any{worker, run},
		order: "id", limit: 1,
		set: "lease_until = " + clockSQL(r.db, 0),
	})
	return failure(err, "run", run)
}

// maxReleased is more runs than one worker executes.
const maxReleased = 100_000

// leaseQuery changes the leases of some runs.
type leaseQuery struct {
	where      string
	args       []any
	order      string // in which the rows are locked
	limit      int
	skipLocked bool // leave out rows that another transaction holds
	set        string
	values     []any
}

// lease chooses and locks the rows first, in one order for everybody, and returns
// them as they are after the change.
func (r *Runs) lease(ctx context.Context, q leaseQuery) ([]models.Run, error) {
	lock := ""
	if isPostgres(r.db) {
		lock = " FOR UPDATE"
		if q.skipLocked {
			lock += " SKIP LOCKED"
		}
	}
	var names []string
	for _, c := range runColumns(r.db) {
		names = append(names, c.Name)
	}
	stmt := "WITH due AS (SELECT id FROM runs WHERE " + q.where + " ORDER BY " + q.order + " LIMIT ?" + lock + ") " +
		"UPDATE runs SET " + q.set + " WHERE id IN (SELECT id FROM due) RETURNING " + strings.Join(names, ", ")
	args := slices.Concat(q.args, []any{q.limit}, q.values)
	var rows []models.Run
	err := inTx(ctx, r.db, func(tx *gorm.DB) error { return tx.Raw(stmt, args...).Scan(&rows).Error })
	return rows, err
}

// runColumns are the columns of a run by name, for RETURNING: with * PostgreSQL
// would refuse the statement, once on each connection, after a column was added.
func runColumns(db *gorm.DB) []clause.Column {
	stmt := &gorm.Statement{DB: db}
	if err := stmt.Parse(&models.Run{}); err != nil {
		panic("repositories: " + err.Error()) // the row type is wrong
	}
	columns := make([]clause.Column, 0, len(stmt.Schema.DBNames))
	for _, name := range stmt.Schema.DBNames {
		columns = append(columns, clause.Column{Name: name})
	}
	return columns
}

// Waiting returns sessions that have queued runs and no active one, those that
// wait longest first. A sweep claims what a lost wake-up left behind.
func (r *Runs) Waiting(ctx context.Context, limit int) ([]core.SessionID, error) {
	ids := []core.SessionID{}
	err := r.db.WithContext(ctx).Model(&models.Run{}).Select("session_id").
		Where("status = 'queued' AND NOT EXISTS (SELECT 1 FROM runs a WHERE a.session_id = runs.session_id AND a.status IN ('running', 'waiting'))").
		Group("session_id").Order("MIN(created_at), session_id").Limit(limit).Scan(&ids).Error
	return ids, failure(err, "sessions", "waiting")
}

// CancelRequested returns the worker's running runs that somebody asked to cancel.
func (r *Runs) CancelRequested(ctx context.Context, worker string) ([]core.RunID, error) {
	ids := []core.RunID{}
	err := r.running(ctx).Select("id").Where("lease_owner = ? AND cancel_requested", worker).Order("id").Scan(&ids).Error
	return ids, failure(err, "runs of worker", worker)
}

func (r *Runs) running(ctx context.Context) *gorm.DB {
	return r.db.WithContext(ctx).Model(&models.Run{}).Where("status = 'running'")
}
