package repositories

import (
	"context"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// SlackPosts stores what was posted to threads of Slack. Safe for concurrent use.
type SlackPosts struct{ db *gorm.DB }

// NewSlackPosts returns the posts in db.
func NewSlackPosts(db *gorm.DB) *SlackPosts { return &SlackPosts{db: db} }

// PostAt returns the post with Slack's id in the channel; ErrNotFound if Bobbin has none.
func (r *SlackPosts) PostAt(ctx context.Context, team, channel, ts string) (core.SlackPost, error) {
	return takeRow[core.SlackPost](r.db.WithContext(ctx).Where("team = ? AND channel = ? AND ts = ? AND ts <> ''", team, channel, ts), "Slack post", ts)
}

// Of returns the posts of the items, ordered by part.
func (r *SlackPosts) Of(ctx context.Context, session core.SessionID, items ...string) ([]core.SlackPost, error) {
	return r.find(ctx, session, "item_id, part", "item_id IN ?", items)
}

// All returns all posts of the session, the oldest first.
func (r *SlackPosts) All(ctx context.Context, session core.SessionID) ([]core.SlackPost, error) {
	return r.find(ctx, session, "slack_posts.created_at, item_id, part", "true")
}

// faultSQL is the condition for posts that a person should know of: those that Slack refused or refused
// to change, and those of which it is unknown whether they are in Slack.
const faultSQL = "state IN ('failed', 'unknown', 'sent') AND error <> ''"

// Fault returns a post that is listed as a core.SlackFault; ErrNotFound if there is none.
func (r *SlackPosts) Fault(ctx context.Context, tenant core.Tenant, session core.SessionID, item string, part int) (core.SlackPost, error) {
	if _, err := NewSessions(r.db).Get(ctx, tenant, session); err != nil {
		return core.SlackPost{}, err
	}
	if err := requireID("message", item); err != nil {
		return core.SlackPost{}, err
	}
	failed := onePost(r.db.WithContext(ctx), core.SlackPost{SessionID: session, ItemID: item, Part: part}).Where(faultSQL)
	return takeRow[core.SlackPost](failed, "failed or unknown Slack post of", core.Clip(item, 40))
}

// Settle stores the state and the error of a post. It needs no lease.
func (r *SlackPosts) Settle(ctx context.Context, p core.SlackPost) error {
	err := commitRowOnce(ctx, r.db, func(tx *gorm.DB) (string, error) {
		return "", onePost(tx, p).UpdateColumns(map[string]any{"state": string(p.State), "error": p.Error, "streaming": false}).Error
	}, nothingToRead)
	return wrapError(err, "Slack post of", p.ItemID)
}

// Resend lets a failed or unknown post be sent again, and a refused change be made again: by the event of
// its message or approval, from which the thread learns of it. ErrConflict if the thread is in a mode
// without posts.
func (r *SlackPosts) Resend(ctx context.Context, tenant core.Tenant, p core.SlackPost) ([]core.Event, error) {
	return changeOnce(ctx, r.db, p.SessionID, func(stx *sessionTx) error {
		var thread models.SlackThread // locked before its posts, as those who post do
		err := stx.tx.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}).Where("session_id = ?", p.SessionID).Take(&thread).Error
		if err != nil {
			return wrapError(err, "Slack thread of session", p.SessionID)
		}
		if !thread.Mode.Posts() {
			return core.Errorf(core.ErrConflict, "the thread is in the mode %s, in which nothing is posted; choose two_way or to_slack first", thread.Mode)
		}
		if p.State != core.SlackPostSent {
			p.State = core.SlackPostPending
		}
		again := onePost(stx.tx, p).Where(faultSQL).UpdateColumns(map[string]any{"state": string(p.State), "error": "", "streaming": false})
		if again.Error != nil || again.RowsAffected == 0 { // somebody else was faster
			return again.Error
		}
		return stx.emitPosted(p)
	}, visibleTo(tenant))
}

// emitPosted emits the event of the message or approval that the post shows, as it is now.
func (stx *sessionTx) emitPosted(p core.SlackPost) error {
	if p.Kind == core.SlackPostApproval {
		list, err := approvals(stx.tx.Where("id = ? AND session_id = ?", p.ItemID, p.SessionID))
		for _, a := range list {
			kind := core.EventApprovalRequested
			if a.Status != core.ApprovalOpen {
				kind = core.EventApprovalDecided
			}
			stx.emitEvents(core.NewEvent(p.SessionID, a.RunID, kind, core.ApprovalData{Approval: a}))
		}
		return err
	}
	row, err := takeRow[core.Message](stx.tx.Where("id = ? AND session_id = ?", p.ItemID, p.SessionID), "message", p.ItemID)
	if err == nil {
		stx.emitMessage(core.EventMessageUpdated, row)
	}
	return err
}

// Unfinished returns the posts of the session that may be in Slack or still stream, the
// oldest first.
func (r *SlackPosts) Unfinished(ctx context.Context, session core.SessionID) ([]core.SlackPost, error) {
	return r.find(ctx, session, "slack_posts.created_at, item_id, part", "state = 'sending' OR streaming")
}

// Misplaced returns posts of messages that left the current path, or came back to it, since
// they were last marked.
func (r *SlackPosts) Misplaced(ctx context.Context, session core.SessionID) ([]core.SlackPost, error) {
	return r.find(ctx, session, "m.seq, part", "kind = 'message' AND state = 'sent' AND off_path = m.on_path")
}

// Outdated returns posts of messages that were edited in place or deleted, or were never stored: a
// draft that was not completed.
func (r *SlackPosts) Outdated(ctx context.Context, session core.SessionID) ([]core.SlackPost, error) {
	return r.find(ctx, session, "slack_posts.created_at, item_id, part", "kind = 'message' AND state = 'sent' AND (m.id IS NULL OR m.revised_at IS NOT NULL OR m.deleted_at IS NOT NULL)")
}

// find returns the posts of the session that match, with their messages m, in order.
func (r *SlackPosts) find(ctx context.Context, session core.SessionID, order, where string, args ...any) ([]core.SlackPost, error) {
	list, err := findRows[core.SlackPost](r.db.WithContext(ctx).Joins("LEFT JOIN messages m ON m.id = slack_posts.item_id").
		Where("slack_posts.session_id = ?", session).Where(where, args...).Order(order))
	return list, wrapError(err, "Slack posts of session", session)
}

// LastPosted returns the newest ts of the session's posts in its thread, and the newest seq of a
// message that has one; empty and 0 if there is none.
func (r *SlackPosts) LastPosted(ctx context.Context, t core.SlackThread) (ts string, seq int64, err error) {
	var last struct {
		TS  string
		Seq int64
	}
	err = r.db.WithContext(ctx).Model(&core.SlackPost{}).Joins("LEFT JOIN messages m ON m.id = slack_posts.item_id").
		Select("COALESCE(MAX(slack_posts.ts), '') AS ts, COALESCE(MAX(m.seq), 0) AS seq").
		Where("slack_posts.session_id = ? AND team = ? AND channel = ? AND thread = ?", t.SessionID, t.Team, t.Channel, t.Thread).Scan(&last).Error
	return last.TS, last.Seq, wrapError(err, "Slack posts of session", t.SessionID)
}

// Begin stores a post that is about to be sent. If there is one already that is not pending, it
// returns that and false. ErrStale if the worker no longer has the thread's lease.
func (r *SlackPosts) Begin(ctx context.Context, worker string, p core.SlackPost) (core.SlackPost, bool, error) {
	p.State, p.CreatedAt = core.SlackPostSending, core.Now()
	row := p
	begun := false
	err := inTx(ctx, r.db, func(tx *gorm.DB) error {
		if err := checkThreadLease(tx, worker, p.SessionID); err != nil {
			return err
		}
		res := tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&row)
		begun = res.RowsAffected == 1
		if res.Error != nil || begun {
			return res.Error
		}
		again := onePost(tx, p).Where("state = 'pending'").Select("state", "streaming", "text_from", "text_to").Updates(row)
		if begun = again.RowsAffected == 1; again.Error != nil {
			return again.Error
		}
		row = core.SlackPost{}
		return onePost(tx, p).Take(&row).Error
	})
	return row, begun, wrapError(err, "Slack post of", p.ItemID)
}

// Confirm stores that the post is in Slack with its ts, unless its ts is known, or Bobbin has no such
// post. It needs no lease. Most calls are for posts whose ts is known: these only read.
func (r *SlackPosts) Confirm(ctx context.Context, p core.SlackPost) error {
	if requireID("session", p.SessionID) != nil {
		return nil
	}
	unsure := func(db *gorm.DB) *gorm.DB {
		return onePost(db, p).Where("team = ? AND channel = ? AND ts = '' AND state IN ('pending', 'sending', 'unknown')", p.Team, p.Channel)
	}
	n, err := count(unsure(r.db.WithContext(ctx)))
	if err == nil && n > 0 {
		err = commitRowOnce(ctx, r.db, func(tx *gorm.DB) (string, error) {
			return "", unsure(tx).UpdateColumns(map[string]any{"state": string(core.SlackPostSent), "ts": p.TS, "hash": "", "error": ""}).Error
		}, nothingToRead)
	}
	return wrapError(err, "Slack post of", p.ItemID)
}

// Update stores what became of a post. ErrStale if the worker no longer has the thread's
// lease.
func (r *SlackPosts) Update(ctx context.Context, worker string, p core.SlackPost) error {
	row := p
	err := inTx(ctx, r.db, func(tx *gorm.DB) error {
		if err := checkThreadLease(tx, worker, p.SessionID); err != nil {
			return err
		}
		return onePost(tx, p).Select("ts", "state", "streaming", "off_path", "text_from", "text_to", "hash", "error").Updates(row).Error
	})
	return wrapError(err, "Slack post of", p.ItemID)
}

// onePost selects the stored post. gorm's own condition for a primary key leaves out the part if
// it is 0, and so would select all parts.
func onePost(tx *gorm.DB, p core.SlackPost) *gorm.DB {
	return tx.Model(&core.SlackPost{}).Where("session_id = ? AND item_id = ? AND part = ?", p.SessionID, p.ItemID, p.Part)
}
