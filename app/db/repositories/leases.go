package repositories

import (
	"context"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/core/conversation"
	"bobbin/app/db/models"
)

// TakeOver leases orphaned running runs to the worker: those that were given back, those of
// earlier processes of the worker's replica, and with Lapsed those whose lease has expired
// by the database's clock. Each gets its next attempt, so that writes of the former one are
// refused; its partial text stays until the new attempt saves its own.
//
// If another process still held the lease of a run, that process has died with it, and the
// run's deaths increase by one. Only runs that have t.Deaths then are taken over. With
// t.Later the stored number stays one lower until CountDeath.
//
// Several replicas that take over concurrently get different runs. The oldest runs come
// first, at most t.Limit.
func (r *Runs) TakeOver(ctx context.Context, t core.TakeOver) ([]core.Run, error) {
	where, args := r.orphanedSQL(t.Worker, t.Lapsed)
	later := 0
	if t.Later {
		later = 1
	}
	var runs []core.Run
	err := inTx(ctx, r.reserve, func(tx *gorm.DB) error {
		orphans := tx.Where(where+" AND "+nextDeaths+" = ?", append(args, t.Worker, t.Deaths)...).Order("created_at, id").Limit(t.Limit)
		leased, err := updateFree[leasedRun](tx, "id", orphans, map[string]any{
			"attempt": gorm.Expr("attempt + 1"), "lease_owner": t.Worker, "lease_until": gorm.Expr(clockSQL(tx, core.RunLease)), "deaths": t.Deaths - later,
		})
		if err == nil && len(leased) > 0 {
			runs, err = findRuns(tx, tx.Where("id IN ?", idsOf(leased, func(r leasedRun) core.RunID { return r.ID })), "created_at, id") // with their inputs
		}
		return err
	})
	return runs, wrapError(err, "runs for worker", t.Worker)
}

// nextDeaths is the number of deaths of an orphaned run, including the one that its
// take-over detects. The argument is the worker that takes it over.
const nextDeaths = "deaths + CASE WHEN lease_owner IN ('', ?) THEN 0 ELSE 1 END"

// Due counts the runs that TakeOver would lease to the worker, by their deaths after it.
func (r *Runs) Due(ctx context.Context, worker string, lapsed bool) (map[int]int, error) {
	where, args := r.orphanedSQL(worker, lapsed)
	var rows []struct{ Deaths, N int }
	err := r.reserve.WithContext(ctx).Raw("SELECT next AS deaths, COUNT(*) AS n FROM (SELECT "+nextDeaths+" AS next FROM runs WHERE "+where+") d GROUP BY next",
		append([]any{worker}, args...)...).Scan(&rows).Error
	due := map[int]int{}
	for _, row := range rows {
		due[row.Deaths] = row.N
	}
	return due, wrapError(err, "runs for worker", worker)
}

// orphanedSQL is the condition for running runs without a live worker.
func (r *Runs) orphanedSQL(worker string, lapsed bool) (where string, args []any) {
	of, args := workersOf(worker)
	where = "lease_owner = '' OR lease_owner <> ? AND " + of
	if lapsed {
		where += " OR (lease_until IS NULL OR lease_until <= " + clockSQL(r.db, 0) + ")"
		if isPostgres(r.db) { // while it waited for a lock on the table, no process could renew a lease
			where += " AND clock_timestamp() < now() + interval '1 second'"
		}
	}
	return "status = 'running' AND (" + where + ")", append([]any{worker}, args...)
}

// workersOf is the condition for leases of the worker's replica.
func workersOf(worker string) (where string, args []any) {
	prefix := core.WorkersOf(worker)
	return "substr(lease_owner || '/', 1, ?) = ?", []any{len(prefix), prefix}
}

// CountDeath stores the deaths of a run that was taken over with core.TakeOver.Later.
// ErrStale if the attempt no longer owns it.
func (r *Runs) CountDeath(ctx context.Context, run core.RunID, attempt, deaths int) error {
	return r.updateAttempt(ctx, run, attempt, map[string]any{"deaths": deaths})
}

// Renew extends the worker's leases of the runs, and returns those that the worker has
// lost: taken over, or ended. This is the heartbeat. It skips a run that another
// transaction is writing to: that lease stays as it is.
func (r *Runs) Renew(ctx context.Context, worker string, runs []core.RunID) (lost []core.RunID, err error) {
	var renewed []leasedRun
	var skipped []core.RunID
	err = inTx(ctx, r.reserve, func(tx *gorm.DB) (err error) {
		own := tx.Where("status = 'running' AND lease_owner = ? AND id IN ?", worker, runs).Order("id")
		renewed, err = updateFree[leasedRun](tx, "id", own, map[string]any{"lease_until": gorm.Expr(clockSQL(tx, core.RunLease))})
		return err
	})
	lost = slices.DeleteFunc(slices.Clone(runs), func(id core.RunID) bool { return slices.Contains(renewed, leasedRun{id}) })
	if err == nil && len(lost) > 0 {
		err = runningRuns(ctx, r.reserve).Select("id").Where("lease_owner = ? AND id IN ?", worker, lost).Scan(&skipped).Error
	}
	if err != nil {
		return nil, wrapError(err, "leases of worker", worker)
	}
	return slices.DeleteFunc(lost, func(id core.RunID) bool { return slices.Contains(skipped, id) }), nil
}

// Release ends the worker's leases of the runs, or all if none is named, so that others can take over its runs without
// waiting. Writes of the worker are accepted until then.
func (r *Runs) Release(ctx context.Context, worker string, runs ...core.RunID) error {
	leased := runningRuns(ctx, r.reserve).Where("lease_owner = ?", worker)
	if len(runs) > 0 {
		leased = leased.Where("id IN ?", runs)
	}
	return wrapError(leased.UpdateColumns(r.noLease()).Error, "leases of worker", worker)
}

// noLease are the columns of a running run that any worker may take over.
func (r *Runs) noLease() map[string]any {
	return map[string]any{"lease_owner": "", "lease_until": gorm.Expr(clockSQL(r.db, 0))}
}

// Yield gives back a run whose attempt could not reach the database, so that any worker can
// take it over without waiting, and counts that. ErrStale if the attempt no longer owns it.
func (r *Runs) Yield(ctx context.Context, run core.RunID, attempt int) error {
	changes := r.noLease()
	changes["give_backs"] = gorm.Expr("give_backs + 1")
	return r.updateAttempt(ctx, run, attempt, changes)
}

// updateAttempt changes a run that the attempt owns; otherwise it returns ErrStale.
func (r *Runs) updateAttempt(ctx context.Context, run core.RunID, attempt int, columns map[string]any) error {
	db := r.db
	if !isPostgres(db) { // the run's answer may wait for this write, which must not wait for all others
		select {
		case r.first <- struct{}{}:
			defer func() { <-r.first }()
		case <-ctx.Done():
			return ctx.Err()
		}
		db = r.reserve
	}
	done := runningRuns(ctx, db).Where("id = ? AND attempt = ?", run, attempt).UpdateColumns(columns)
	if done.Error == nil && done.RowsAffected == 0 {
		return conversation.StaleRun(run)
	}
	return wrapError(done.Error, "run", run)
}

// leasedRun is a run whose lease has changed.
type leasedRun struct{ ID core.RunID }

// TableName is the table's name.
func (leasedRun) TableName() string { return "runs" }

// claimDue leases the first of the rows that are due, or that an earlier process of the worker's replica held.
// ErrNotFound if there is none.
func claimDue[T any](ctx context.Context, g *gorm.DB, worker string, lease time.Duration, and string) (row T, err error) {
	own, former := worker+"/", core.WorkersOf(worker)
	err = inTx(ctx, g, func(tx *gorm.DB) error {
		due := tx.Where("finished_at IS NULL AND (due_at <= "+clockBoundSQL(tx, 0)+" OR substr(lease_owner, 1, ?) = ? AND substr(lease_owner, 1, ?) <> ?)"+and, len(former), former, len(own), own).
			Order("due_at, id").Limit(1)
		leased, err := updateFree[T](tx, "id", due, map[string]any{
			"attempts": gorm.Expr("attempts + 1"), "lease_owner": own + core.NewID[string](), "due_at": gorm.Expr(clockSQL(tx, lease)),
		})
		if err == nil && len(leased) == 0 {
			err = core.Errorf(core.ErrNotFound, "nothing is due")
		}
		if err == nil {
			row = leased[0]
		}
		return err
	})
	return row, err
}

// skipLocked locks rows on PostgreSQL, and leaves out those that another transaction has locked.
func skipLocked() clause.Locking {
	return clause.Locking{Strength: clause.LockingStrengthUpdate, Options: clause.LockingOptionsSkipLocked}
}

// updateLeased changes a row whose lease is still held.
func updateLeased[T any, I ~string](g *gorm.DB, what string, id I, lease string, changes map[string]any) error {
	err := retryTx(func() error {
		res := g.Model(new(T)).Where("id = ? AND lease_owner = ? AND finished_at IS NULL", id, lease).UpdateColumns(changes)
		if res.Error == nil && res.RowsAffected == 0 {
			return core.Errorf(core.ErrStale, "another process has taken over %s %s", what, id)
		}
		return res.Error
	})
	return wrapError(err, what, id)
}

// updateFree changes the rows of the query, besides those that another transaction has locked, and returns them in no
// order. It locks them in the order of the query.
func updateFree[R any](tx *gorm.DB, key string, which *gorm.DB, changes map[string]any) (rows []R, err error) {
	among := " IN (?)"
	if isPostgres(tx) { // which could execute that once for each row, and so lock more than a limit
		among = " = ANY(ARRAY(?))"
	}
	free := which.Model(new(R)).Select(key).Clauses(skipLocked())
	err = tx.Model(&rows).Clauses(returningAll(tx, new(R))).Where(key+among, free).UpdateColumns(changes).Error
	return rows, err
}

// returningAll returns all columns of the row type by name: with * PostgreSQL would fail the
// statement once on each connection after a column was added.
func returningAll(db *gorm.DB, row any) clause.Returning {
	var all clause.Returning
	for _, name := range columnsOf(db, row) {
		all.Columns = append(all.Columns, clause.Column{Name: name})
	}
	return all
}

func columnsOf(db *gorm.DB, row any) []string {
	stmt := &gorm.Statement{DB: db}
	if err := stmt.Parse(row); err != nil {
		panic("repositories: " + err.Error()) // the row type is wrong
	}
	return slices.Clip(stmt.Schema.DBNames)
}

// Waiting returns sessions with queued runs and no active one, the longest waiting first. A
// sweep claims runs whose wake-up was lost.
func (r *Runs) Waiting(ctx context.Context, limit int) ([]core.SessionID, error) {
	ids := []core.SessionID{}
	err := r.reserve.WithContext(ctx).Model(&models.Run{}).Select("session_id").
		Where("status = 'queued' AND NOT EXISTS (SELECT 1 FROM runs a WHERE a.session_id = runs.session_id AND a.status IN ('running', 'waiting'))").
		Group("session_id").Order("MIN(created_at), session_id").Limit(limit).Scan(&ids).Error
	return ids, wrapError(err, "sessions", "waiting")
}

// CancelRequested returns the worker's running runs for which a cancel was requested.
func (r *Runs) CancelRequested(ctx context.Context, worker string) ([]core.RunID, error) {
	ids := []core.RunID{}
	// Ordered by the id alone, SQLite would look through all runs in that order.
	err := runningRuns(ctx, r.reserve).Select("id").Where("lease_owner = ? AND cancel_requested", worker).Order("lease_until, id").Scan(&ids).Error
	return ids, wrapError(err, "runs of worker", worker)
}

func runningRuns(ctx context.Context, db *gorm.DB) *gorm.DB {
	return db.WithContext(ctx).Model(&models.Run{}).Where("status = 'running'")
}
