package repositories

import (
	"context"
	"slices"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// What a user wrote in sessions of others: messages with the user as author, those of the
// user's runs, and copies of these in forks. Deleted ones may still have a client message
// id.
const (
	userSessionsSQL = "SELECT id FROM sessions WHERE owner = @owner AND user_id = @user AND archived_at IS NULL AND NOT temporary" +
		" UNION ALL SELECT id FROM sessions WHERE owner = @owner AND user_id = @user AND archived_at IS NOT NULL AND NOT temporary" +
		" UNION ALL SELECT id FROM sessions WHERE owner = @owner AND user_id = @user AND temporary" // one query per index
	otherSessionsSQL = "session_id NOT IN (" + userSessionsSQL + ")"
	userRunsSQL      = "owner = @owner AND user_id = @user AND " + otherSessionsSQL
	userMessagesSQL  = "owner = @owner AND (deleted_at IS NULL OR client_message_id IS NOT NULL) AND " + otherSessionsSQL +
		" AND (author_id = @user OR author = @user OR id IN (" + userMessageIDsSQL + "))"
	userMessageIDsSQL = `WITH RECURSIVE mine (id) AS (
		SELECT m.id FROM messages m JOIN runs r ON r.id = m.run_id WHERE r.owner = @owner AND r.user_id = @user
		UNION
		SELECT m.id FROM messages m JOIN mine ON m.origin_id = mine.id)
		SELECT id FROM mine`
)

// userParams are the parameters that name a user.
func userParams(owner, user string) map[string]any {
	return map[string]any{"owner": owner, "user": user}
}

// Shared returns the sessions of others in which the user wrote, the newest first: a fork
// precedes its source.
func (r *Purges) Shared(ctx context.Context, owner, user string) ([]core.SessionID, error) {
	db := r.db.WithContext(ctx)
	var ids []core.SessionID
	err := db.Raw("SELECT id FROM sessions WHERE id IN (SELECT session_id FROM messages WHERE "+userMessagesSQL+
		" UNION SELECT session_id FROM runs WHERE "+userRunsSQL+") ORDER BY created_at DESC, id DESC", userParams(owner, user)).Scan(&ids).Error
	return ids, wrapError(err, "sessions shared with user", user)
}

// Memories returns the ids of the user's memories.
func (r *Purges) Memories(ctx context.Context, owner, user string) ([]core.MemoryID, error) {
	var ids []core.MemoryID
	err := r.db.WithContext(ctx).Model(&models.Memory{}).Where("owner = ? AND user_id = ?", owner, user).Pluck("id", &ids).Error
	return ids, wrapError(err, "memories of user", user)
}

// User removes the user's data outside of sessions, and the user's name from usage records.
func (r *Purges) User(ctx context.Context, owner, user string) (core.Purged, error) {
	var gone core.Purged
	err := r.purgeMemories(ctx, owner, user, &gone)
	if err == nil {
		err = r.purgeUserBlobs(ctx, owner, user, &gone)
	}
	if err == nil {
		err = r.purgeUserUsage(ctx, owner, user, &gone)
	}
	if err == nil {
		res := r.db.WithContext(ctx).Where("owner = ? AND user_id = ? AND user_id <> ''", owner, user).Delete(&models.SlackItem{})
		gone.Remove("slack_inbox", res.RowsAffected)
		err = res.Error
	}
	return gone, wrapError(err, "user", user)
}

// purgeMemories deletes the user's memories.
func (r *Purges) purgeMemories(ctx context.Context, owner, user string, gone *core.Purged) error {
	ids, err := r.Memories(ctx, owner, user)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(ids, purgeChunk) {
		var n int64
		err := r.retryTx(ctx, func(tx *gorm.DB) error {
			res := tx.Where("owner = ? AND id IN ?", owner, part).Delete(&models.Memory{})
			n = res.RowsAffected
			return res.Error
		})
		if err != nil {
			return err
		}
		gone.Remove("memories", n)
	}
	return nil
}

// purgeUserUsage removes the user's name from usage records.
func (r *Purges) purgeUserUsage(ctx context.Context, owner, user string, gone *core.Purged) error {
	db := r.db.WithContext(ctx)
	var ids []string
	err := db.Model(&models.ModelCall{}).Where("owner = ? AND user_id = ? AND user_id <> ''", owner, user).Pluck("id", &ids).Error
	if err != nil {
		return err
	}
	for part := range slices.Chunk(ids, purgeChunk) {
		res := db.Model(&models.ModelCall{}).Where("id IN ?", part).UpdateColumn("user_id", "")
		if res.Error != nil {
			return res.Error
		}
		gone.Empty("model_calls", res.RowsAffected)
	}
	return r.forgetUserDays(ctx, owner, user, gone)
}

// CountUser counts the rows of the user outside of the user's own sessions, by table.
func (r *Purges) CountUser(ctx context.Context, owner, user string) (core.Purged, error) {
	var there core.Purged
	db, args := r.db.WithContext(ctx), userParams(owner, user)
	encoded, _ := core.EncodeJSON(user) // a string can always be encoded
	args["field"] = `"user_id":` + string(encoded)
	named := "instr(CAST(data AS text), @field) > 0"
	if isPostgres(r.db) {
		named = "position(@field IN CAST(data AS text)) > 0"
	}
	const ofUser = "owner = @owner AND user_id = @user"
	for _, c := range []struct{ table, where string }{
		{"memories", ofUser}, {"blobs", ofUser}, {"slack_inbox", ofUser},
		{"messages", userMessagesSQL},
		{"runs", userRunsSQL},
		{"session_events", "owner = @owner AND " + otherSessionsSQL + " AND " + named},
		{"model_calls", "owner = @owner AND user_id = @user AND (session_id IS NULL OR " + otherSessionsSQL + ")"},
		{"usage_days", "owner = @owner AND level IN ('user', 'user_session') AND user_id = @user"},
		{"blob_totals", "owner = @owner AND by_user AND user_id = @user"},
	} {
		n, err := countRows(db, c.table, c.where, args)
		if err != nil {
			return there, err
		}
		if c.where == ofUser {
			there.Remove(c.table, n)
		} else {
			there.Empty(c.table, n)
		}
	}
	return there, nil
}
