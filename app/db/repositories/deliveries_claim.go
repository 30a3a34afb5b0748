package repositories

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Claim leases deliveries that are due: the oldest of each receiver, then the next of each.
// Each gets its next attempt, so that results of the former one are refused. Several
// replicas that claim concurrently get different deliveries. The cost depends on the number
// of receivers, not on the length of the backlog.
func (r *Deliveries) Claim(ctx context.Context, c core.DeliveryClaim) ([]core.Delivery, error) {
	var rows []models.Delivery
	leasedBefore := map[string]bool{}
	err := inTx(ctx, r.db, func(tx *gorm.DB) error {
		// The receivers that may get deliveries and have one due, the longest waiting first.
		none := []string{"/"} // no receiver has a slash
		for receiver, n := range c.Receivers {
			if n <= 0 {
				none = append(none, receiver)
			}
		}
		var receivers []string
		err := tx.Raw(receiversSQL+clockBoundSQL(tx, 0)+" AND receiver NOT IN ? ORDER BY due_at, receiver LIMIT ?", none, c.Limit).Scan(&receivers).Error
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
		ids := make([]string, 0, len(due))
		for _, d := range due {
			ids = append(ids, d.ID)
			leasedBefore[d.ID] = d.LeaseOwner != ""
		}
		// Checks again that they are due, now that the rows are locked.
		free := tx.Model(&models.Delivery{}).Select("id").Where("id IN ?", ids).Where(dueSQL(tx)).Order("id").Clauses(skipLocked())
		return tx.Model(&rows).Clauses(returningAll(tx, &models.Delivery{})).Where("id IN (?)", free).UpdateColumns(map[string]any{
			"attempt": gorm.Expr("attempt + 1"), "tries": gorm.Expr("tries + 1"), "lease_owner": c.Worker,
			"lease_until": gorm.Expr(clockSQL(tx, c.Lease)), "due_at": gorm.Expr(clockSQL(tx, c.Lease)),
		}).Error
	})
	if err != nil {
		return nil, wrapError(err, "deliveries for worker", c.Worker)
	}
	slices.SortFunc(rows, func(a, b models.Delivery) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	list, err := mapRows(rows, infallible(models.Delivery.Core))
	for i := range list {
		list[i].TakenOver = leasedBefore[string(list[i].ID)]
	}
	return list, err
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
