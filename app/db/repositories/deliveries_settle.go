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
	return r.updateInSession(ctx, s.ID, gorm.Expr("attempt = ? AND state = 'pending'", s.Attempt), func(tx *gorm.DB) (map[string]any, error) {
		changes := map[string]any{"state": string(s.State), "error": s.Error, "lease_owner": "", "lease_until": nil}
		switch {
		case s.State != core.DeliveryPending:
			changes["finished_at"] = core.Now()
		case s.Probes:
			changes["due_at"] = gorm.Expr("since")
		default:
			changes["due_at"] = gorm.Expr(clockSQL(tx, s.Wait))
		}
		return changes, nil
	})
}

// updateInSession changes a delivery that matches the condition, and emits an event unless
// it merely waits for its next attempt. ErrStale for one that does not match.
func (r *Deliveries) updateInSession(ctx context.Context, id core.DeliveryID, fits clause.Expr, changes func(tx *gorm.DB) (map[string]any, error)) ([]core.Event, error) {
	var found models.Delivery
	if err := r.db.WithContext(ctx).Select("session_id").Where("id = ?", id).Take(&found).Error; err != nil {
		return nil, wrapError(err, "delivery", id)
	}
	events, err := changeOnce(ctx, r.db, found.SessionID, func(stx *sessionTx) error {
		columns, err := changes(stx.tx)
		if err != nil {
			return err
		}
		var row models.Delivery
		res := stx.tx.Model(&row).Clauses(returningAll(stx.tx, &models.Delivery{})).
			Where("id = ?", id).Where(fits).UpdateColumns(columns)
		if res.Error != nil {
			return res.Error
		}
		if res.RowsAffected == 0 {
			return core.Errorf(core.ErrStale, "delivery %s is in progress, or was settled by another process", id)
		}
		if row.State != core.DeliveryPending || row.Error == "" {
			stx.emitEvents(row.Core().Updated())
		}
		return nil
	})
	return events, wrapError(err, "delivery", id)
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
			var gone []models.Delivery
			err := stx.tx.Model(&gone).Clauses(returningAll(stx.tx, &models.Delivery{})).Where("id IN ?", ids).Where(undeliverable(db, in)).UpdateColumns(map[string]any{
				"state": string(core.DeliveryFailed), "error": in.Reason, "lease_owner": "", "lease_until": nil, "finished_at": core.Now(),
			}).Error
			slices.SortFunc(gone, func(a, b models.Delivery) int { return a.CreatedAt.Compare(b.CreatedAt) })
			for _, d := range gone {
				stx.emitEvents(d.Core().Updated())
			}
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
