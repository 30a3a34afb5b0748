package repositories

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Deliveries stores messages to outside receivers. They are written with what they report
// (sessionTx.reportEvent). Safe for concurrent use, by any number of replicas.
type Deliveries struct{ db *gorm.DB }

// NewDeliveries returns the deliveries in db.
func NewDeliveries(db *gorm.DB) *Deliveries { return &Deliveries{db: db} }

// Retry makes a delivery due immediately, with all its attempts left, whatever its state.
// ErrConflict while a process is sending it.
func (r *Deliveries) Retry(ctx context.Context, tenant core.Tenant, run core.RunID, id core.DeliveryID) (core.Delivery, []core.Event, error) {
	if _, err := r.getOfRun(ctx, tenant, run, id); err != nil {
		return core.Delivery{}, nil, err
	}
	free := gorm.Expr("(lease_until IS NULL OR lease_until <= " + clockSQL(r.db, 0) + ")")
	events, err := r.updateInSession(ctx, id, free, map[string]any{
		"state": string(core.DeliveryPending), "tries": 0, "since": core.Now(), "due_at": gorm.Expr(clockSQL(r.db, 0)), "finished_at": nil, "error": "",
	})
	if errors.Is(err, core.ErrStale) {
		err = core.Errorf(core.ErrConflict, "delivery %s is in progress; try again in a moment", id)
	}
	if err != nil {
		return core.Delivery{}, nil, err
	}
	d, err := r.getOfRun(ctx, tenant, run, id)
	return d, events, err
}

// getOfRun returns a delivery of the run.
func (r *Deliveries) getOfRun(ctx context.Context, tenant core.Tenant, run core.RunID, id core.DeliveryID) (core.Delivery, error) {
	if _, err := NewRuns(r.db).Get(ctx, tenant, run); err != nil {
		return core.Delivery{}, err
	}
	row, err := takeRow[models.Delivery](byID(ctx, r.db, "delivery", id).Where("run_id = ? AND id = ?", run, id), "delivery", id)
	return row.Core(), err
}

// List returns the deliveries of a run in the order of their creation.
func (r *Deliveries) List(ctx context.Context, tenant core.Tenant, run core.RunID) ([]core.Delivery, error) {
	if _, err := NewRuns(r.db).Get(ctx, tenant, run); err != nil {
		return nil, err
	}
	list, err := findAll(r.db.WithContext(ctx).Where("run_id = ?", run).Order("created_at, id"), models.Delivery.Core)
	return list, wrapError(err, "run", run)
}

// ListAll returns the deliveries of all runs, the newest first.
func (r *Deliveries) ListAll(ctx context.Context, tenant core.Tenant, q core.DeliveryQuery) (core.Page[core.Delivery], error) {
	type titledRow struct {
		models.Delivery
		Title string
	}
	rows := r.db.WithContext(ctx).Model(&models.Delivery{}).Where("owner = ?", tenant.Owner).
		Select("*, COALESCE((SELECT title FROM sessions WHERE sessions.id = deliveries.session_id), '') AS title")
	if q.State != "" {
		rows = rows.Where("state = ?", q.State)
	}
	page, err := findPage(rows, keyset[titledRow]{list: "deliveries", column: "id"}, q.PageQuery, longColumns{}, func(r titledRow) position { return position{ID: string(r.ID)} })
	return core.Page[core.Delivery]{NextCursor: page.NextCursor, Items: mapRows(page.Items, func(r titledRow) core.Delivery {
		d := r.Core()
		d.Title = r.Title
		return d
	})}, err
}

// maxWaiting bounds the deliveries that Stats counts.
const maxWaiting = 10_000

// Stats counts pending deliveries, up to maxWaiting.
func (r *Deliveries) Stats(ctx context.Context) (core.DeliveryStats, error) {
	row, err := scan[backlog](r.db.WithContext(ctx).Raw("SELECT (SELECT COUNT(*) FROM (SELECT 1 FROM deliveries WHERE state >= 'pending' AND state <= 'pending' ORDER BY state, id LIMIT ?) w) AS n, "+
		"(SELECT created_at FROM deliveries WHERE state >= 'pending' AND state <= 'pending' ORDER BY state, id LIMIT 1) AS oldest, "+clockSQL(r.db, 0)+" AS now", maxWaiting))
	return core.DeliveryStats{Waiting: row.N, Oldest: row.age()}, wrapError(err, "deliveries", "that wait")
}

// webhookOf returns the webhook of the run: its own, else the session's, else the owner's, which
// hears nothing of temporary sessions; nil = there is none.
func (stx *sessionTx) webhookOf(run core.Run) (*core.Webhook, error) {
	hook := run.Webhook
	if hook == nil {
		hook = stx.session.Webhook.Core()
	}
	if hook != nil || stx.session.Temporary {
		return hook, nil
	}
	if stx.loaded != nil {
		stx.change.NoWebhook = stx.loaded.After
		return stx.loaded.Hook.Core(), nil
	}
	return ownerWebhook(stx.tx, run.Owner)
}

// reportEvent emits an event. If a run waits or has ended, it also inserts a delivery to its
// webhook, if there is one.
func (stx *sessionTx) reportEvent(e core.Event) error {
	d, ok := e.Data.(core.RunData)
	if !ok || e.Type == core.EventRunStarted {
		stx.emitEvents(e)
		return nil
	}
	run := d.Run
	hook, err := stx.webhookOf(run)
	if err != nil {
		return wrapError(err, "webhook of", run.Owner)
	}
	d.Delivers = hook != nil
	stx.emitEvents(e.WithData(d))
	if hook == nil {
		return nil
	}
	// SQLite's clock has milliseconds: with a finer time the delivery would not be due yet.
	now := core.Now().Truncate(time.Millisecond)
	row := models.Delivery{Target: string(hook.URL), DueAt: now, Delivery: core.Delivery{
		ID: core.NewID[core.DeliveryID](), Owner: run.Owner, SessionID: run.SessionID, RunID: run.ID, Kind: core.DeliveryWebhook,
		Event: e.Type, Receiver: hook.URL.Receiver(), Secret: hook.Secret, State: core.DeliveryPending, Since: now, CreatedAt: now,
	}}
	return wrapError(stx.change.Insert(&row), "delivery", row.ID)
}

// Claim leases deliveries that are due: the oldest of each receiver, then the next of each.
// Each gets its next attempt, so that results of the former one are refused. Several
// replicas that claim concurrently get different deliveries. The cost depends on the number
// of receivers, not on the length of the backlog.
func (r *Deliveries) Claim(ctx context.Context, c core.DeliveryClaim) ([]core.Delivery, error) {
	var rows []models.Delivery
	leasedBefore := map[core.DeliveryID]bool{}
	err := inTx(ctx, r.db, func(tx *gorm.DB) error {
		// The receivers that may get deliveries and have one due, the longest waiting first.
		none := []string{"/"} // no receiver has a slash
		for receiver, n := range c.Receivers {
			if n <= 0 {
				none = append(none, receiver)
			}
		}
		receivers, err := scan[[]string](tx.Raw(receiversSQL+clockBoundSQL(tx, 0)+" AND receiver NOT IN ? ORDER BY due_at, receiver LIMIT ?", none, c.Limit))
		if err != nil || len(receivers) == 0 {
			return err
		}
		var parts []string
		var args []any
		for _, receiver := range receivers {
			limit, ok := c.Receivers[receiver]
			if !ok {
				limit = c.Each
			}
			parts = append(parts, "SELECT * FROM (SELECT id, lease_owner, ROW_NUMBER() OVER (ORDER BY due_at, id) AS turn, due_at FROM deliveries"+
				" WHERE receiver = ? AND "+dueSQL(tx)+" ORDER BY due_at, id LIMIT ?) d")
			args = append(args, receiver, min(limit, c.Limit))
		}
		var due []models.Delivery
		err = tx.Raw(strings.Join(parts, " UNION ALL ")+" ORDER BY turn, due_at, id LIMIT ?", append(args, c.Limit)...).Scan(&due).Error
		if err != nil || len(due) == 0 {
			return err
		}
		ids := make([]core.DeliveryID, 0, len(due))
		for _, d := range due {
			ids = append(ids, d.ID)
			leasedBefore[d.ID] = d.LeaseOwner != ""
		}
		// Checks again that they are due, now that the rows are locked.
		rows, err = updateFree[models.Delivery](tx, "id", tx.Where("id IN ?", ids).Where(dueSQL(tx)).Order("id"), map[string]any{
			"attempt": gorm.Expr("attempt + 1"), "tries": gorm.Expr("tries + 1"), "lease_owner": c.Worker,
			"lease_until": gorm.Expr(clockSQL(tx, c.Lease)), "due_at": gorm.Expr(clockSQL(tx, c.Lease)),
		})
		return err
	})
	if err != nil {
		return nil, wrapError(err, "deliveries for worker", c.Worker)
	}
	slices.SortFunc(rows, func(a, b models.Delivery) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	list := mapRows(rows, models.Delivery.Core)
	for i := range list {
		list[i].TakenOver = leasedBefore[list[i].ID]
	}
	return list, nil
}

// dueSQL is the condition for deliveries that are due.
func dueSQL(db *gorm.DB) string { return "state = 'pending' AND due_at <= " + clockBoundSQL(db, 0) }

// receiversSQL walks from receiver to receiver through the index.
const receiversSQL = `WITH RECURSIVE receivers (receiver) AS (
	SELECT MIN(receiver) FROM deliveries WHERE state = 'pending'
	UNION ALL
	SELECT (SELECT MIN(d.receiver) FROM deliveries d WHERE d.state = 'pending' AND d.receiver > receivers.receiver)
	FROM receivers WHERE receivers.receiver IS NOT NULL)
SELECT receiver FROM (SELECT receiver, (SELECT MIN(d.due_at) FROM deliveries d WHERE d.state = 'pending' AND d.receiver = receivers.receiver) AS due_at
	FROM receivers WHERE receiver IS NOT NULL) r
WHERE due_at <= `
