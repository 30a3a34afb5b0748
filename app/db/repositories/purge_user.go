package repositories

import (
	"context"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// What a user wrote in sessions of others: messages that name the user as their
// author, and those of runs that were the user's.
const (
	othersSessions = "session_id NOT IN (SELECT id FROM sessions WHERE owner = @owner AND user_id = @user)"
	usersRuns      = "owner = @owner AND user_id = @user AND " + othersSessions
	usersMessages  = "owner = @owner AND deleted_at IS NULL AND " + othersSessions +
		" AND (author = @user OR run_id IN (SELECT id FROM runs WHERE owner = @owner AND user_id = @user))"
)

// who are the parameters that name a user.
func who(owner, user string) map[string]any { return map[string]any{"owner": owner, "user": user} }

// Shared returns the sessions of others in which the user wrote.
func (r *Purges) Shared(ctx context.Context, owner, user string) ([]core.SessionID, error) {
	db := r.db.WithContext(ctx)
	var ids []core.SessionID
	err := db.Raw("SELECT session_id FROM messages WHERE "+usersMessages+" UNION SELECT session_id FROM runs WHERE "+usersRuns, who(owner, user)).Scan(&ids).Error
	return ids, failure(err, "sessions shared with user", user)
}

// Memories returns the ids of the user's memories.
func (r *Purges) Memories(ctx context.Context, owner, user string) ([]core.MemoryID, error) {
	var ids []core.MemoryID
	err := r.db.WithContext(ctx).Model(&models.Memory{}).Where("owner = ? AND user_id = ?", owner, user).Pluck("id", &ids).Error
	return ids, failure(err, "memories of user", user)
}

// FromShared takes what the user wrote out of a session of others: as if each of
// the user's messages, and the answers to them, had been deleted (Branches.Delete).
// The rows stay in their places. The events that are returned tell of it.
// ErrConflict while the session has a run that has not ended, unless force says that
// nobody works on that any more.
func (r *Purges) FromShared(ctx context.Context, owner, user string, id core.SessionID, force bool) (core.Purged, error) {
	var gone core.Purged
	err := inTx(ctx, r.db, func(tx *gorm.DB) error {
		j, err := lockSession(tx, id, visible(core.Scope{Owner: owner}))
		if err != nil {
			return err
		}
		if err := j.idle(); err != nil && !force {
			return err
		}
		if err := j.emptyMessages(owner, user, &gone); err != nil {
			return err
		}
		if err := j.emptyRuns(owner, user, &gone); err != nil {
			return err
		}
		gone.Events = j.events
		return j.close()
	})
	return gone, failure(err, "session", id)
}

// emptyMessages deletes the user's messages and their answers, as a user would.
func (j *journal) emptyMessages(owner, user string, gone *core.Purged) error {
	var rows []models.Message
	err := j.tx.Where(usersMessages, who(owner, user)).Where("session_id = ?", j.session.ID).Order("seq").Find(&rows).Error
	if err != nil {
		return err
	}
	for _, row := range rows {
		// Before erase, which copies what is left into the events.
		err := j.tx.Model(&models.Message{}).Where("id = ?", row.ID).UpdateColumn("client_message_id", nil).Error
		if err != nil {
			return err
		}
		m, err := row.Core()
		if err != nil {
			return err
		}
		if err := j.erase(m); err != nil { // again, for one that went with another: that changes nothing
			return err
		}
	}
	gone.Empty("messages", int64(len(rows)))
	return nil
}

// emptyRuns leaves nothing of the user in the runs, and in the events that tell of
// them.
func (j *journal) emptyRuns(owner, user string, gone *core.Purged) error {
	var rows []models.Run
	err := j.tx.Where(usersRuns, who(owner, user)).Where("session_id = ?", j.session.ID).Find(&rows).Error
	if err != nil {
		return err
	}
	for _, row := range rows {
		run, err := row.Core()
		if err != nil {
			return err
		}
		run = nobodys(run)
		empty := models.RunFrom(run)
		err = j.tx.Model(&models.Run{}).Where("id = ?", row.ID).UpdateColumns(map[string]any{
			"user_id": "", "input": empty.Input, "client_message_id": nil, "partial": "", "state": nil, "context": nil, "error": empty.Error,
		}).Error
		if err != nil {
			return err
		}
		n, err := j.emptyRunEvents(run.ID)
		if err != nil {
			return err
		}
		gone.Empty("session_events", n)
	}
	gone.Empty("runs", int64(len(rows)))
	return nil
}

// nobodys returns the run without anything of who wrote it.
func nobodys(r core.Run) core.Run {
	r.User, r.ClientMessageID, r.Partial, r.State, r.Context = "", "", "", nil, nil
	r.Input = emptied(r.Input)
	if r.Error != nil {
		r.Error = &core.RunError{Code: r.Error.Code, Message: "removed with the user"}
	}
	return r
}

// emptyRunEvents takes the user out of the events that carry the run, and returns
// how many there were.
func (j *journal) emptyRunEvents(run core.RunID) (int64, error) {
	var rows []models.Event
	err := j.tx.Where("session_id = ? AND run_id = ? AND type LIKE 'run.%'", j.session.ID, run).Find(&rows).Error
	if err != nil {
		return 0, err
	}
	var n int64
	for _, row := range rows {
		if row.Type == string(core.EventRunQueued) {
			continue // carries the message, which erase has emptied
		}
		data, ok := changed(row.Core(), func(d *core.RunData) bool {
			d.Run = nobodys(d.Run)
			return true
		})
		if !ok {
			continue
		}
		err := j.tx.Model(&models.Event{}).Where("session_id = ? AND event_seq = ?", row.SessionID, row.EventSeq).
			UpdateColumn("data", models.JSON(data)).Error
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// User removes what is the user's and in no session, and the user's name from the
// books.
func (r *Purges) User(ctx context.Context, owner, user string) (core.Purged, error) {
	var gone core.Purged
	err := inTx(ctx, r.db, func(tx *gorm.DB) error {
		n, err := deleteMemories(tx, owner, user)
		if err != nil {
			return err
		}
		gone.Remove("memories", n)
		if err := purgeUserBlobs(tx, owner, user, &gone); err != nil {
			return err
		}
		res := tx.Model(&models.ModelCall{}).Where("owner = ? AND user_id = ?", owner, user).UpdateColumn("user_id", "")
		gone.Empty("model_calls", res.RowsAffected)
		return res.Error
	})
	return gone, failure(err, "user", user)
}

// deleteMemories deletes the user's memories; indexes in memory learn of it.
func deleteMemories(tx *gorm.DB, owner, user string) (int64, error) {
	revision, err := nextRevision(tx, owner)
	if err != nil {
		return 0, err
	}
	var ids []string
	mine := tx.Model(&models.Memory{}).Where("owner = ? AND user_id = ?", owner, user)
	if err := mine.Pluck("id", &ids).Error; err != nil || len(ids) == 0 {
		return 0, err
	}
	gone := make([]models.MemoryDeletion, 0, len(ids))
	for _, id := range ids {
		gone = append(gone, models.MemoryDeletion{Owner: owner, MemoryID: id, Revision: revision})
	}
	if err := insert(tx, &gone); err != nil {
		return 0, err
	}
	res := tx.Where("owner = ? AND user_id = ?", owner, user).Delete(&models.Memory{})
	return res.RowsAffected, res.Error
}

// CountUser counts what there is of the user outside of the user's own sessions,
// by table.
func (r *Purges) CountUser(ctx context.Context, owner, user string) (core.Purged, error) {
	var there core.Purged
	db, args := r.db.WithContext(ctx), who(owner, user)
	var n int64
	var err error
	for _, table := range []string{"memories", "blobs"} {
		if n, err = countRows(db, table, "owner = @owner AND user_id = @user", args); err != nil {
			return there, err
		}
		there.Remove(table, n)
	}
	named := "owner = @owner AND " + othersSessions + " AND ("
	for i, field := range userFields(user) {
		if i > 0 {
			named += " OR "
		}
		key := [...]string{"plain", "escaped"}[i]
		args[key] = field
		named += r.contains("CAST(data AS text)", "@"+key)
	}
	for _, c := range []struct{ table, where string }{
		{"messages", usersMessages},
		{"runs", usersRuns},
		{"session_events", named + ")"},
		{"model_calls", "owner = @owner AND user_id = @user AND (session_id IS NULL OR " + othersSessions + ")"},
	} {
		if n, err = countRows(db, c.table, c.where, args); err != nil {
			return there, err
		}
		there.Empty(c.table, n)
	}
	return there, nil
}

// contains is the condition that a text is in another one.
func (r *Purges) contains(text, part string) string {
	if isPostgres(r.db) {
		return "position(" + part + " IN " + text + ") > 0"
	}
	return "instr(" + text + ", " + part + ") > 0"
}
