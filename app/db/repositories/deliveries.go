package repositories

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

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

// reportEvent emits an event. If a run waits or has ended, it also inserts a delivery to its
// webhook, if there is one.
func (stx *sessionTx) reportEvent(e core.Event) error {
	d, ok := e.Data.(core.RunData)
	if !ok || e.Type == core.EventRunStarted {
		stx.emitEvents(e)
		return nil
	}
	run := d.Run
	// The run's own webhook, else the session's, else the owner's, which hears nothing of temporary sessions.
	hook, err := run.Webhook, error(nil)
	if hook == nil {
		hook = stx.session.Webhook.Core()
	}
	switch {
	case hook != nil || stx.session.Temporary:
	case stx.loaded != nil:
		stx.change.NoWebhook = stx.loaded.After
		hook = stx.loaded.Hook.Core()
	default:
		hook, err = ownerWebhook(stx.tx, run.Owner)
	}
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

// Settle stores the result of an attempt, and returns the event of the delivery's end. It
// returns core.ErrStale for an attempt that is over.
func (r *Deliveries) Settle(ctx context.Context, s core.Settlement) ([]core.Event, error) {
	changes := map[string]any{"state": string(s.State), "error": s.Error, "lease_owner": "", "lease_until": nil}
	switch {
	case s.State != core.DeliveryPending:
		changes["finished_at"] = core.Now()
	case s.Probes:
		changes["due_at"] = gorm.Expr("since")
	default:
		changes["due_at"] = gorm.Expr(clockSQL(r.db, s.Wait))
	}
	return r.updateInSession(ctx, s.ID, gorm.Expr("attempt = ? AND state = 'pending'", s.Attempt), changes)
}

// updateInSession changes a delivery that matches the condition. ErrStale for one that does not match.
func (r *Deliveries) updateInSession(ctx context.Context, id core.DeliveryID, fits clause.Expr, changes map[string]any) ([]core.Event, error) {
	var found models.Delivery
	if err := r.db.WithContext(ctx).Select("session_id").Where("id = ?", id).Take(&found).Error; err != nil {
		return nil, wrapError(err, "delivery", id)
	}
	events, err := changeOnce(ctx, r.db, found.SessionID, func(stx *sessionTx) error {
		n, err := stx.updateDeliveries([]core.DeliveryID{id}, fits, changes)
		if err == nil && n == 0 {
			err = core.Errorf(core.ErrStale, "delivery %s is in progress, or was settled by another process", id)
		}
		return err
	})
	return events, wrapError(err, "delivery", id)
}

// updateDeliveries changes those of the deliveries that match the condition, and emits an event for each
// unless it merely waits for its next attempt. It returns how many there were.
func (stx *sessionTx) updateDeliveries(ids []core.DeliveryID, fits clause.Expr, changes map[string]any) (int, error) {
	var rows []models.Delivery
	err := stx.tx.Model(&rows).Clauses(returningAll(stx.tx, &models.Delivery{})).Where("id IN ?", ids).Where(fits).UpdateColumns(changes).Error
	slices.SortFunc(rows, func(a, b models.Delivery) int { return a.CreatedAt.Compare(b.CreatedAt) })
	for _, d := range rows {
		if d.State != core.DeliveryPending || d.Error == "" {
			stx.emitEvents(d.Core().Updated())
		}
	}
	return len(rows), err
}

// GiveUpReceiver abandons deliveries to a receiver that has long been unreachable, the
// oldest first, and returns their events, one for each. Those that were tried lately stay.
func (r *Deliveries) GiveUpReceiver(ctx context.Context, in core.ReceiverGivenUp) (events []core.Event, err error) {
	db := r.db.WithContext(ctx)
	found, err := findRows[models.Delivery](db.Select("id, session_id").Where(undeliverable(db, in)).Order("due_at, id").Limit(in.Limit))
	bySession := map[core.SessionID][]core.DeliveryID{}
	for _, d := range found {
		bySession[d.SessionID] = append(bySession[d.SessionID], d.ID)
	}
	for session, ids := range bySession {
		if err != nil {
			break
		}
		var some []core.Event
		some, err = changeSession(ctx, r.db, session, func(stx *sessionTx) error {
			_, err := stx.updateDeliveries(ids, undeliverable(db, in), map[string]any{
				"state": string(core.DeliveryFailed), "error": in.Reason, "lease_owner": "", "lease_until": nil, "finished_at": core.Now(),
			})
			return err
		})
		if isNotFound(err) { // its session is being removed
			err = nil
		}
		events = append(events, some...)
	}
	return events, wrapError(err, "deliveries to", in.Receiver)
}

func undeliverable(db *gorm.DB, in core.ReceiverGivenUp) clause.Expr {
	return gorm.Expr("state = 'pending' AND receiver = ? AND due_at <= "+clockBoundSQL(db, -in.Age), in.Receiver)
}

// Release ends the leases of the worker and, with all, also those of earlier processes of
// its replica. The leases keep their owners until they are settled.
func (r *Deliveries) Release(ctx context.Context, worker string, all bool) error {
	where, args := "lease_owner = ?", []any{worker}
	if all {
		where, args = workersOf(worker)
	}
	err := r.db.WithContext(ctx).Model(&models.Delivery{}).
		Where("state = 'pending' AND lease_until IS NOT NULL").Where(where, args...).
		UpdateColumns(map[string]any{"lease_until": nil, "due_at": gorm.Expr(clockSQL(r.db, 0))}).Error
	return wrapError(err, "deliveries of worker", worker)
}

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
