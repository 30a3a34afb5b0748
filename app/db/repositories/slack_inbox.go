package repositories

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// SlackInbox stores what Slack sent until it is handled, and its identity for a while after.
// Safe for concurrent use, by any number of replicas.
type SlackInbox struct{ db *gorm.DB }

// NewSlackInbox returns the inbox in db.
func NewSlackInbox(db *gorm.DB) *SlackInbox { return &SlackInbox{db: db} }

// Add stores an item that is due immediately, unless the app has one with its key.
func (r *SlackInbox) Add(ctx context.Context, item core.SlackItem) (added bool, err error) {
	row := models.SlackItem{SlackItem: item, Payload: string(item.Payload)}
	res := r.db.WithContext(ctx).Clauses(clause.OnConflict{DoNothing: true}).Create(&row)
	return res.RowsAffected > 0, wrapError(res.Error, "slack item", item.ID)
}

// nextOfLaneSQL is the condition for the oldest item of a lane of which no other one is
// leased. The item at hand is slack_inbox.
const nextOfLaneSQL = `NOT EXISTS (SELECT 1 FROM slack_inbox p WHERE p.lane = slack_inbox.lane AND p.finished_at IS NULL AND p.id <> slack_inbox.id
	AND (p.lease_owner <> '' OR (p.position, p.id) < (slack_inbox.position, slack_inbox.id)))`

// Claim leases the oldest item of a lane, if it is due or an earlier process of the worker's
// replica held it. ErrNotFound when there is none.
func (r *SlackInbox) Claim(ctx context.Context, worker string) (core.SlackItem, error) {
	row, err := claimDue[models.SlackItem](ctx, r.db, worker, core.SlackLease, " AND "+nextOfLaneSQL)
	return row.Core(), wrapError(err, "slack item for worker", worker)
}

// Repeats reports whether another message of the same gesture, written at most
// core.SlackGesture before or after, is handled in its place: one that is done, or an older one.
func (r *SlackInbox) Repeats(ctx context.Context, item core.SlackItem) (bool, error) {
	at, err := strconv.ParseFloat(item.Position, 64)
	if item.Gesture == "" || err != nil {
		return false, nil //nolint:nilerr // without a time nothing can be said
	}
	bound := func(plus time.Duration) string { return fmt.Sprintf("%.6f", at+plus.Seconds()) }
	n, err := count(r.db.WithContext(ctx).Model(&models.SlackItem{}).
		Where("app = ? AND gesture = ? AND gesture <> '' AND id <> ? AND position BETWEEN ? AND ?", item.App, item.Gesture, item.ID, bound(-core.SlackGesture), bound(core.SlackGesture)).
		Where("finished_at IS NOT NULL OR position < ?", item.Position).Limit(1))
	return n > 0, wrapError(err, "slack item", item.ID)
}

// Retry ends the lease after an attempt, and stores its error, its session and its user, by which
// purges find it; the item is due after wait. ErrStale when the lease was lost.
func (r *SlackInbox) Retry(ctx context.Context, item core.SlackItem, wait time.Duration) error {
	return updateLeased[models.SlackItem](r.db.WithContext(ctx), "slack item", item.ID, item.Lease, map[string]any{
		"error": item.Error, "session_id": models.Ref(item.SessionID), "user_id": item.User, "lease_owner": "", "due_at": gorm.Expr(clockSQL(r.db, wait)),
	})
}

// Finish removes the payload of an item that is done. ErrStale when the lease was lost.
func (r *SlackInbox) Finish(ctx context.Context, item core.SlackItem) error {
	return updateLeased[models.SlackItem](r.db.WithContext(ctx), "slack item", item.ID, item.Lease, map[string]any{
		"payload": "", "finished_at": core.Now(), "session_id": models.Ref(item.SessionID), "user_id": item.User, "error": item.Error, "lease_owner": "",
	})
}

// FindMessage returns the message of the session that the client message id names: in the log,
// or of a run that is queued. Pending says that the item with the key is not done.
func (r *SlackInbox) FindMessage(ctx context.Context, q core.SlackMessageQuery) (core.SlackMessageRef, error) {
	var found struct {
		MessageID models.Ref
		Pending   bool
	}
	err := r.db.WithContext(ctx).Raw(`SELECT
		COALESCE((SELECT id FROM messages WHERE session_id = @s AND client_message_id = @c),
			(SELECT user_message_id FROM runs WHERE session_id = @s AND client_message_id = @c)) AS message_id,
		EXISTS (SELECT 1 FROM slack_inbox WHERE app = @app AND item_key = @key AND finished_at IS NULL) AS pending`,
		map[string]any{"s": models.Ref(q.SessionID), "c": q.ClientMessageID, "app": q.App, "key": q.Key}).Scan(&found).Error
	return core.SlackMessageRef{MessageID: core.MessageID(found.MessageID), Pending: found.Pending}, wrapError(err, "session", q.SessionID)
}

// MessageBefore returns what follows the prefix in the greatest client message id of the session that begins with
// it and is less than prefix+end, in the log or of a run that is queued; empty = there is none.
func (r *SlackInbox) MessageBefore(ctx context.Context, session core.SessionID, prefix, end string) (string, error) {
	newest, err := scan[string](r.db.WithContext(ctx).Raw(`SELECT COALESCE(MAX(id), '') FROM (
		SELECT client_message_id AS id FROM messages WHERE session_id = @s AND client_message_id IS NOT NULL
		UNION ALL SELECT client_message_id FROM runs WHERE session_id = @s AND client_message_id IS NOT NULL) AS known
		WHERE id LIKE @prefix AND id < @end`,
		map[string]any{"s": models.Ref(session), "prefix": prefix + "%", "end": prefix + end}))
	return strings.TrimPrefix(newest, prefix), wrapError(err, "session", session)
}

// Sweep removes items that were done longer than keep ago.
func (r *SlackInbox) Sweep(ctx context.Context, keep time.Duration) error {
	err := r.db.WithContext(ctx).Where("finished_at <= " + clockBoundSQL(r.db, -keep)).Delete(&models.SlackItem{}).Error
	return wrapError(err, "slack items", "that are done")
}
