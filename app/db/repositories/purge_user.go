package repositories

import (
	"context"
	"encoding/json"
	"slices"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// What a user wrote in sessions of others: messages that name the user as their
// author, those of runs that were the user's, and copies of these in forks. What was
// deleted before may still have the name that its client gave it.
const (
	othersSessions = "session_id NOT IN (SELECT id FROM sessions WHERE owner = @owner AND user_id = @user)"
	usersRuns      = "owner = @owner AND user_id = @user AND " + othersSessions
	usersMessages  = "owner = @owner AND (deleted_at IS NULL OR client_message_id IS NOT NULL) AND " + othersSessions +
		" AND (author = @user OR id IN (" + usersWords + "))"
	usersWords = `WITH RECURSIVE mine (id) AS (
		SELECT m.id FROM messages m JOIN runs r ON r.id = m.run_id WHERE r.owner = @owner AND r.user_id = @user
		UNION
		SELECT m.id FROM messages m JOIN mine ON m.origin_id = mine.id)
		SELECT id FROM mine`
)

// who are the parameters that name a user.
func who(owner, user string) map[string]any { return map[string]any{"owner": owner, "user": user} }

// Shared returns the sessions of others in which the user wrote, the newest first: a
// fork comes before what it is a copy of.
func (r *Purges) Shared(ctx context.Context, owner, user string) ([]core.SessionID, error) {
	db := r.db.WithContext(ctx)
	var ids []core.SessionID
	err := db.Raw("SELECT id FROM sessions WHERE id IN (SELECT session_id FROM messages WHERE "+usersMessages+
		" UNION SELECT session_id FROM runs WHERE "+usersRuns+") ORDER BY created_at DESC, id DESC", who(owner, user)).Scan(&ids).Error
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
// The rows stay in their places; runs of the user that have not ended are canceled.
// The events that are returned tell of it.
//
// ErrConflict while the session has a run that is in the way, as unended says.
// ErrStale while a fork has copies of the user's messages, which could not be told
// for what they are afterwards: those first.
func (r *Purges) FromShared(ctx context.Context, owner, user string, id core.SessionID, unended core.Unended) (core.Purged, error) {
	var gone core.Purged
	err := r.try(ctx, func(tx *gorm.DB) error {
		gone = core.Purged{}
		j, err := lockSession(tx, id, visible(core.Scope{Owner: owner}))
		if err != nil {
			return err
		}
		if err := j.unended(unended); err != nil {
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

// unended returns ErrConflict while the session has a run that is in the way.
func (j *journal) unended(allowed core.Unended) error {
	switch allowed {
	case core.AllowUnended:
		return nil
	case core.AllowUnleased:
		var leased int64
		err := j.tx.Model(&models.Run{}).Where("session_id = ? AND status = 'running' AND lease_until > "+clockSQL(j.tx, 0), j.session.ID).Count(&leased).Error
		if err == nil && leased > 0 {
			err = busyError(j.session.ID)
		}
		return err
	default:
		return j.idle()
	}
}

// emptyMessages deletes the user's messages and their answers, as a user would.
func (j *journal) emptyMessages(owner, user string, gone *core.Purged) error {
	var rows []models.Message
	err := j.tx.Where(usersMessages, who(owner, user)).Where("session_id = ?", j.session.ID).Order("seq").Find(&rows).Error
	if err != nil {
		return err
	}
	messages, err := values(rows, models.Message.Core)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(messages, maxIDs) {
		ids := make([]core.MessageID, 0, len(part))
		for _, m := range part {
			ids = append(ids, m.ID)
		}
		var copies int64
		err := j.tx.Model(&models.Message{}).Where("origin_id IN ? AND deleted_at IS NULL", ids).Count(&copies).Error
		if err == nil && copies > 0 {
			err = core.Errorf(core.ErrStale, "session %s was forked meanwhile", j.session.ID)
		}
		if err != nil {
			return err
		}
		// Before erase, which copies what is left into the events.
		err = j.tx.Model(&models.Message{}).Where("id IN ?", ids).UpdateColumn("client_message_id", nil).Error
		if err != nil {
			return err
		}
	}
	gone.Empty("messages", int64(len(rows)))
	return j.erase(messages...)
}

// emptyRuns leaves nothing of the user in the runs, and in the events that tell of
// them. Those that have not ended are canceled: there is nothing to answer any more.
func (j *journal) emptyRuns(owner, user string, gone *core.Purged) error {
	var rows []models.Run
	err := j.tx.Where(usersRuns, who(owner, user)).Where("session_id = ?", j.session.ID).Order("queue_seq").Find(&rows).Error
	if err != nil {
		return err
	}
	mine := make(map[core.RunID]bool, len(rows))
	for _, row := range rows {
		run, err := row.Core()
		if err != nil {
			return err
		}
		canceled := !run.Status.Ended()
		run = ended(nobodys(run))
		empty := models.RunFrom(run)
		err = j.tx.Model(&models.Run{}).Where("id = ?", row.ID).UpdateColumns(map[string]any{
			"user_id": "", "input": empty.Input, "client_message_id": nil, "partial": "", "state": nil, "context": nil, "error": empty.Error,
			"status": empty.Status, "finished_at": empty.FinishedAt, "lease_owner": "", "lease_until": nil,
			"webhook_url": "", "webhook_secret": "",
		}).Error
		if err != nil {
			return err
		}
		told := j.tx.Where("run_id = ?", row.ID).Delete(&models.Delivery{})
		if told.Error != nil {
			return told.Error
		}
		if told.RowsAffected > 0 {
			gone.Remove("deliveries", told.RowsAffected)
		}
		mine[run.ID] = true
		if canceled {
			j.emit(core.NewEvent(run.SessionID, run.ID, core.EventRunCanceled, core.RunData{Run: run}))
		}
	}
	n, err := j.emptyRunEvents(mine)
	gone.Empty("runs", int64(len(rows)))
	gone.Empty("session_events", n)
	return err
}

// nobodys returns the run without anything of who wrote it.
func nobodys(r core.Run) core.Run {
	r.User, r.ClientMessageID, r.Partial, r.State, r.Context, r.Webhook = "", "", "", nil, nil, nil
	r.Input = emptied(r.Input)
	if r.Error != nil {
		r.Error = &core.RunError{Code: r.Error.Code, Message: "removed with the user"}
	}
	return r
}

// ended returns the run canceled, if it has not ended.
func ended(r core.Run) core.Run {
	if !r.Status.Ended() {
		now := core.Now()
		r.Status, r.FinishedAt, r.LeaseOwner, r.LeaseUntil = core.RunCanceled, &now, "", nil
	}
	return r
}

// emptyRunEvents takes the user out of the events that carry the runs, and returns
// how many there were.
func (j *journal) emptyRunEvents(runs map[core.RunID]bool) (int64, error) {
	var n int64
	if len(runs) == 0 {
		return 0, nil
	}
	for last := int64(0); ; {
		var rows []models.Event
		err := j.tx.Where("session_id = ? AND event_seq > ? AND type LIKE 'run.%'", j.session.ID, last).Order("event_seq").Limit(eventsPage).Find(&rows).Error
		if err != nil {
			return n, err
		}
		for _, row := range rows {
			last = row.EventSeq
			event := row.Core()
			if !runs[event.RunID] {
				continue
			}
			data, ok := withoutUser(event)
			if !ok {
				continue
			}
			if err := j.rewrite(row, data); err != nil {
				return n, err
			}
			n++
		}
		if len(rows) < eventsPage {
			return n, nil
		}
	}
}

// withoutUser returns the data of an event of a run without its user.
func withoutUser(e core.Event) (json.RawMessage, bool) {
	if e.Type == core.EventRunQueued {
		return changed(e, func(d *core.MessageData) bool {
			m := d.Message
			if m.RunID != e.RunID { // the question of somebody else, to be answered anew
				return false
			}
			if m.DeletedAt == nil { // erase has not seen it: it never came into the log
				now := core.Now()
				m.DeletedAt = &now
			}
			d.Message = core.Message{
				ID: m.ID, SessionID: m.SessionID, Seq: m.Seq, ParentID: m.ParentID, OnPath: m.OnPath, Role: m.Role, Status: m.Status,
				Source: m.Source, RunID: m.RunID, CreatedAt: m.CreatedAt, DeletedAt: m.DeletedAt,
			}
			return true
		})
	}
	return changed(e, func(d *core.RunData) bool {
		d.Run = nobodys(d.Run)
		return true
	})
}

// User removes what is the user's and in no session, and the user's name from the
// books.
func (r *Purges) User(ctx context.Context, owner, user string) (core.Purged, error) {
	var gone core.Purged
	err := r.try(ctx, func(tx *gorm.DB) error {
		gone = core.Purged{}
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
