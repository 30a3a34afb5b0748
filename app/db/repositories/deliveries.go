package repositories

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Deliveries stores what has to reach somebody outside. They are written with what
// they report (journal.report). Safe for concurrent use, by any number of replicas.
type Deliveries struct {
	db *gorm.DB
}

// NewDeliveries returns the deliveries in db.
func NewDeliveries(db *gorm.DB) *Deliveries { return &Deliveries{db: db} }

// Claim leases deliveries that are due: of each receiver the oldest, then of each the
// next. Each gets its next attempt, so that what is still stored of the former one is
// refused. Of several replicas that claim at once each gets other ones.
func (r *Deliveries) Claim(ctx context.Context, c core.DeliveryClaim) ([]core.Delivery, error) {
	var rows []models.Delivery
	found := map[string]dueDelivery{}
	err := inTx(ctx, r.db, func(tx *gorm.DB) error {
		due, err := due(tx, c)
		if err != nil || len(due) == 0 {
			return err
		}
		ids := make([]string, 0, len(due))
		for _, d := range due {
			ids, found[d.ID] = append(ids, d.ID), d
		}
		return tx.Model(&rows).Clauses(clause.Returning{Columns: deliveryColumns(tx)}).Where("id IN ?", ids).UpdateColumns(map[string]any{
			"attempt": gorm.Expr("attempt + 1"), "tries": gorm.Expr("tries + 1"),
			"lease_owner": c.Worker, "lease_until": gorm.Expr(clockSQL(tx, c.Lease)),
		}).Error
	})
	if err != nil {
		return nil, failure(err, "deliveries for worker", c.Worker)
	}
	slices.SortFunc(rows, func(a, b models.Delivery) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	list, err := values(rows, sure(models.Delivery.Core))
	for i := range list {
		d := found[string(list[i].ID)]
		list[i].TakenOver, list[i].Receiver = d.LeaseOwner != "", d.Receiver
	}
	return list, err
}

// dueDelivery is a delivery that may be claimed.
type dueDelivery struct{ ID, LeaseOwner, Receiver string }

// due chooses and locks deliveries. What makes one due is asked twice: the second time
// of the row as it is when it is locked.
func due(tx *gorm.DB, c core.DeliveryClaim) (rows []dueDelivery, err error) {
	now, lock := clockSQL(tx, 0), ""
	if isPostgres(tx) {
		lock = " FOR UPDATE OF d SKIP LOCKED"
	}
	none, most, args := []string{"/"}, "CASE receiver WHEN '/' THEN 0", []any{} // no receiver has a slash
	for receiver, n := range c.Receivers {
		if n <= 0 {
			none = append(none, receiver)
			continue
		}
		most, args = most+" WHEN ? THEN "+strconv.Itoa(n), append(args, receiver)
	}
	most += " ELSE " + strconv.Itoa(c.Each) + " END"
	when := "d.state = 'pending' AND (d.next_at IS NULL OR d.next_at <= " + now + ") AND (d.lease_until IS NULL OR d.lease_until <= " + now + ")"
	err = tx.Raw("SELECT d.id, d.lease_owner, q.receiver FROM (SELECT id, receiver, ROW_NUMBER() OVER (PARTITION BY receiver ORDER BY created_at, id) AS turn"+
		" FROM (SELECT d.id, d.created_at, "+receiverSQL(tx)+" AS receiver FROM deliveries d WHERE "+when+") w WHERE receiver NOT IN ?) q"+
		" JOIN deliveries d ON d.id = q.id WHERE q.turn <= "+most+" AND "+when+
		" ORDER BY q.turn, d.created_at, d.id LIMIT ?"+lock, append(append([]any{none}, args...), c.Limit)...).Scan(&rows).Error
	return rows, err
}

// receiverSQL is the host, and its port, of a delivery's target: what is between :// and
// the next slash, without a user.
func receiverSQL(db *gorm.DB) string {
	if isPostgres(db) {
		const host = "split_part(split_part(d.target, '://', 2), '/', 1)"
		return "lower(substr(" + host + ", strpos(" + host + ", '@') + 1))"
	}
	const rest = "substr(d.target, instr(d.target, '://') + 3)"
	const host = "substr(" + rest + ", 1, instr(" + rest + " || '/', '/') - 1)"
	return "lower(substr(" + host + ", instr(" + host + ", '@') + 1))"
}

// deliveryColumns are the columns of a delivery by name: see runColumns.
func deliveryColumns(db *gorm.DB) []clause.Column {
	stmt := &gorm.Statement{DB: db}
	if err := stmt.Parse(&models.Delivery{}); err != nil {
		panic("repositories: " + err.Error()) // the row type is wrong
	}
	columns := make([]clause.Column, 0, len(stmt.Schema.DBNames))
	for _, name := range stmt.Schema.DBNames {
		columns = append(columns, clause.Column{Name: name})
	}
	return columns
}

// Release ends the leases of the worker and, with all, also those of its replica's
// former lives. Who had them stays known until they are settled.
func (r *Deliveries) Release(ctx context.Context, worker string, all bool) error {
	where, args := "lease_owner = ?", []any{worker}
	if all {
		where, args = workersOf(worker)
	}
	err := r.db.WithContext(ctx).Model(&models.Delivery{}).
		Where("state = 'pending' AND lease_until IS NOT NULL").Where(where, args...).
		UpdateColumn("lease_until", nil).Error
	return failure(err, "deliveries of worker", worker)
}

// Settle stores what came of a try, and returns the event that tells of its end.
// It is refused with core.ErrStale for an attempt that is over.
func (r *Deliveries) Settle(ctx context.Context, s core.Settlement) ([]core.Event, error) {
	changes, err := checked(settled(r.db, s))
	if err != nil {
		return nil, err
	}
	return r.change(ctx, s.ID, func(tx *gorm.DB) *gorm.DB {
		return tx.Where("attempt = ? AND state = 'pending'", s.Attempt)
	}, changes)
}

// settled are the columns that a settlement sets.
func settled(db *gorm.DB, s core.Settlement) map[string]any {
	changes := map[string]any{"state": string(s.State), "error": s.Error, "lease_owner": "", "lease_until": nil, "next_at": nil}
	if s.State == core.DeliveryPending {
		changes["next_at"] = gorm.Expr(clockSQL(db, s.Wait))
	} else {
		changes["finished_at"] = core.Now()
	}
	return changes
}

// change changes a delivery that fits the condition, and tells the session's feed
// unless it merely waits for its next try. ErrStale for one that does not fit.
func (r *Deliveries) change(ctx context.Context, id core.DeliveryID, fits func(*gorm.DB) *gorm.DB, changes map[string]any) ([]core.Event, error) {
	var seen models.Delivery
	if err := r.db.WithContext(ctx).Select("session_id").Where("id = ?", id).Take(&seen).Error; err != nil {
		return nil, failure(err, "delivery", id)
	}
	var j *journal
	err := inTx(ctx, r.db, func(tx *gorm.DB) (err error) {
		if j, err = lockSession(tx, core.SessionID(seen.SessionID)); err != nil {
			return err
		}
		var row models.Delivery
		res := tx.Model(&row).Clauses(clause.Returning{Columns: deliveryColumns(tx)}).
			Where("id = ?", id).Scopes(fits).UpdateColumns(changes)
		if res.Error != nil {
			return res.Error
		}
		if res.RowsAffected == 0 {
			return core.Errorf(core.ErrStale, "delivery %s is at work, or settled by another one", id)
		}
		if row.State != string(core.DeliveryPending) || row.NextAt == nil {
			j.emit(row.Core().Updated())
		}
		return j.close()
	})
	if err != nil {
		return nil, failure(err, "delivery", id)
	}
	return j.events, nil
}

// Retry makes a delivery due at once, with all its tries before it, whatever became
// of it. ErrConflict while a process is at it.
func (r *Deliveries) Retry(ctx context.Context, scope core.Scope, run core.RunID, id core.DeliveryID) (core.Delivery, []core.Event, error) {
	if _, err := r.get(ctx, scope, run, id); err != nil {
		return core.Delivery{}, nil, err
	}
	events, err := r.change(ctx, id, func(tx *gorm.DB) *gorm.DB {
		return tx.Where("lease_until IS NULL OR lease_until <= " + clockSQL(tx, 0))
	}, map[string]any{
		"state": string(core.DeliveryPending), "tries": 0, "since": core.Now(), "next_at": nil, "finished_at": nil, "error": "",
	})
	if errors.Is(err, core.ErrStale) {
		err = core.Errorf(core.ErrConflict, "delivery %s is being delivered; look at it in a moment", id)
	}
	if err != nil {
		return core.Delivery{}, nil, err
	}
	d, err := r.get(ctx, scope, run, id)
	return d, events, err
}

// get returns a delivery of the run.
func (r *Deliveries) get(ctx context.Context, scope core.Scope, run core.RunID, id core.DeliveryID) (core.Delivery, error) {
	all, err := r.List(ctx, scope, run)
	if err != nil {
		return core.Delivery{}, err
	}
	for _, d := range all {
		if d.ID == id {
			return d, nil
		}
	}
	return core.Delivery{}, notFound("delivery", id)
}

// List returns the deliveries of a run in the order in which they were made.
func (r *Deliveries) List(ctx context.Context, scope core.Scope, run core.RunID) ([]core.Delivery, error) {
	if _, err := NewRuns(r.db).Get(ctx, scope, run); err != nil {
		return nil, err
	}
	var rows []models.Delivery
	err := r.db.WithContext(ctx).Where("run_id = ?", run).Order("created_at, id").Find(&rows).Error
	if err != nil {
		return nil, failure(err, "run", run)
	}
	return values(rows, sure(models.Delivery.Core))
}

// All returns a page of the deliveries of all owners, the newest first.
func (r *Deliveries) All(ctx context.Context, q core.DeliveryQuery) (core.Page[core.Delivery], error) {
	none := core.Page[core.Delivery]{}
	limit, err := pageLimit(q.Limit)
	if err != nil {
		return none, err
	}
	after, more, err := parseCursor(q.Cursor, "deliveries")
	if err != nil {
		return none, err
	}
	db := r.db.WithContext(ctx)
	if more {
		db = db.Where("(created_at, id) < (?, ?)", time.UnixMicro(after.N).UTC(), after.ID)
	}
	if q.State != "" {
		db = db.Where("state = ?", string(q.State))
	}
	var rows []models.Delivery
	if err := db.Order("created_at DESC, id DESC").Limit(limit + 1).Find(&rows).Error; err != nil {
		return none, failure(err, "deliveries", "")
	}
	return page(rows, limit, sure(models.Delivery.Core), func(d models.Delivery) position {
		return position{List: "deliveries", N: d.CreatedAt.UnixMicro(), ID: d.ID}
	})
}

// One returns a delivery, whoever's it is.
func (r *Deliveries) One(ctx context.Context, id core.DeliveryID) (core.Delivery, error) {
	if err := known("delivery", id); err != nil {
		return core.Delivery{}, err
	}
	var row models.Delivery
	if err := r.db.WithContext(ctx).Where("id = ?", id).Take(&row).Error; err != nil {
		return core.Delivery{}, failure(err, "delivery", id)
	}
	return row.Core(), nil
}

// Stats counts what waits to be delivered.
func (r *Deliveries) Stats(ctx context.Context) (core.DeliveryStats, error) {
	n, oldest, err := waiting(ctx, r.db, "deliveries WHERE state = 'pending'")
	return core.DeliveryStats{Waiting: n, Oldest: oldest}, failure(err, "deliveries", "that wait")
}
