package repositories

import (
	"context"
	"errors"
	"time"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Deliveries stores messages to outside receivers. They are written with what they report
// (sessionTx.reportEvent). Safe for concurrent use, by any number of replicas.
type Deliveries struct {
	db *gorm.DB
}

// NewDeliveries returns the deliveries in db.
func NewDeliveries(db *gorm.DB) *Deliveries { return &Deliveries{db: db} }

// Retry makes a delivery due immediately, with all its attempts left, whatever its state.
// ErrConflict while a process is sending it.
func (r *Deliveries) Retry(ctx context.Context, tenant core.Tenant, run core.RunID, id core.DeliveryID) (core.Delivery, []core.Event, error) {
	if _, err := r.getOfRun(ctx, tenant, run, id); err != nil {
		return core.Delivery{}, nil, err
	}
	events, err := r.updateInSession(ctx, id, func(tx *gorm.DB) *gorm.DB {
		return tx.Where("lease_until IS NULL OR lease_until <= " + clockSQL(tx, 0))
	}, func(*gorm.DB) (map[string]any, error) {
		return map[string]any{
			"state": string(core.DeliveryPending), "tries": 0, "since": core.Now(), "due_at": gorm.Expr(clockSQL(r.db, 0)), "finished_at": nil, "error": "",
		}, nil
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
	all, err := r.List(ctx, tenant, run)
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

// List returns the deliveries of a run in the order of their creation.
func (r *Deliveries) List(ctx context.Context, tenant core.Tenant, run core.RunID) ([]core.Delivery, error) {
	if _, err := NewRuns(r.db).Get(ctx, tenant, run); err != nil {
		return nil, err
	}
	var rows []models.Delivery
	err := r.db.WithContext(ctx).Where("run_id = ?", run).Order("created_at, id").Find(&rows).Error
	if err != nil {
		return nil, wrapError(err, "run", run)
	}
	return mapRows(rows, infallible(models.Delivery.Core))
}

// maxWaiting bounds the deliveries that Stats counts.
const maxWaiting = 10_000

// Stats counts pending deliveries, up to maxWaiting.
func (r *Deliveries) Stats(ctx context.Context) (core.DeliveryStats, error) {
	var row struct {
		N      int
		Oldest *clockTime
		Now    clockTime
	}
	err := r.db.WithContext(ctx).Raw("SELECT (SELECT COUNT(*) FROM (SELECT 1 FROM deliveries WHERE state >= 'pending' AND state <= 'pending' ORDER BY state, id LIMIT ?) w) AS n, "+
		"(SELECT created_at FROM deliveries WHERE state >= 'pending' AND state <= 'pending' ORDER BY state, id LIMIT 1) AS oldest, "+clockSQL(r.db, 0)+" AS now", maxWaiting).Scan(&row).Error
	stats := core.DeliveryStats{Waiting: row.N}
	if row.Oldest != nil {
		stats.Oldest = max(row.Now.Sub(row.Oldest.Time), 0)
	}
	return stats, wrapError(err, "deliveries", "that wait")
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
	row := models.Delivery{
		ID: core.NewID[string](), Owner: run.Owner, SessionID: string(run.SessionID), RunID: string(run.ID),
		Kind: string(core.DeliveryWebhook), Event: string(e.Type), Target: string(hook.URL), Receiver: hook.URL.Receiver(),
		Secret: hook.Secret, State: string(core.DeliveryPending), Since: now, DueAt: now, CreatedAt: now,
	}
	return wrapError(stx.change.Insert(&row), "delivery", row.ID)
}
