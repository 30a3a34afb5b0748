package repositories

import (
	"context"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

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

// undeliverable is the condition for deliveries that are to be abandoned.
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
