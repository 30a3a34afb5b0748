package repositories

import (
	"context"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/core/conversation"
	"bobbin/app/db/models"
)

// What a user wrote in sessions of others: messages with the user as author, those of the
// user's runs, and copies of these in forks. Deleted ones may still have a client message
// id.
const (
	userSessionsSQL = "SELECT id FROM sessions WHERE owner = @owner AND user_id = @user AND user_id <> '' AND archived_at IS NULL AND NOT temporary" +
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

func userParams(owner, user string) map[string]any {
	return map[string]any{"owner": owner, "user": user}
}

// Shared returns the sessions of others in which the user wrote, the newest first: a fork
// precedes its source.
func (r *Purges) Shared(ctx context.Context, owner, user string) ([]core.SessionID, error) {
	db := r.db.WithContext(ctx)
	ids, err := scan[[]core.SessionID](db.Raw("SELECT id FROM sessions WHERE id IN (SELECT session_id FROM messages WHERE "+userMessagesSQL+
		" UNION SELECT session_id FROM runs WHERE "+userRunsSQL+") ORDER BY created_at DESC, id DESC", userParams(owner, user)))
	return ids, wrapError(err, "sessions shared with user", user)
}

// User removes the user's data outside of sessions, and the user's name from usage records. Files are removed even if messages of
// others refer to them: these show that the file is gone.
func (r *Purges) User(ctx context.Context, owner, user string) error {
	own := func(rows any) *gorm.DB {
		return r.db.WithContext(ctx).Model(rows).Where("owner = ? AND user_id = ? AND user_id <> ''", owner, user)
	}
	err := purgeParts(ctx, r.db, own(&core.Memory{}), func(tx *gorm.DB, ids []core.MemoryID) error {
		return tx.Where("id IN ?", ids).Delete(&core.Memory{}).Error
	})
	if err == nil {
		err = purgeParts(ctx, r.db, own(&models.Blob{}), func(tx *gorm.DB, ids []models.Ref) error {
			if err := tx.Where("blob_id IN ?", ids).Delete(&models.BlobReference{}).Error; err != nil {
				return err
			}
			_, err := removeBlobs(tx, owner, ids)
			return err
		})
	}
	if err == nil {
		err = purgeParts(ctx, r.db, own(&core.ModelCall{}), func(tx *gorm.DB, ids []string) error {
			calls, err := findRows[core.ModelCall](tx.Scopes(callsLocked).Where("id IN ?", ids))
			if err != nil {
				return err
			}
			return forgetUsage(tx, calls, false)
		})
	}
	if err == nil {
		err = own(&models.SlackItem{}).Delete(&models.SlackItem{}).Error
	}
	return wrapError(err, "user", user)
}

// FromShared erases what the user wrote from a session of another user, as if each of the
// user's messages and the answers to them had been deleted (Branches.Delete). The rows stay
// in their places; unfinished runs of the user are canceled. It returns the events to
// publish. It works in transactions of some hundred rows; an interrupted call is simply
// repeated.
//
// ErrConflict while somebody works on a run of the session. ErrStale while a
// fork has copies of the user's messages, which could not be recognized afterwards: those
// must go first.
func (r *Purges) FromShared(ctx context.Context, owner, user string, id core.SessionID) (all []core.Event, err error) {
	for more := true; more; {
		events, err := changeLog(ctx, r.db, id, func(stx *sessionTx) error {
			leased, err := count(stx.tx.Model(&models.Run{}).Where("session_id = ? AND status = 'running' AND lease_until > "+clockSQL(stx.tx, 0), id))
			if err == nil && leased > 0 {
				err = conversation.Busy(id)
			}
			if err == nil {
				err = stx.cancelRuns(owner, user)
			}
			n := 0
			if err == nil {
				n, err = stx.emptyMessages(owner, user)
			}
			if err == nil && n < sharedRows { // the runs come last: they identify the user's messages
				n, err = stx.emptyRuns(owner, user)
			}
			more = n == sharedRows
			return err
		}, visibleTo(core.Tenant{Owner: owner}))
		if err != nil {
			return all, wrapError(err, "session", id)
		}
		all = append(all, events...)
	}
	return all, nil
}

// sharedRows is how many messages or runs of a user one transaction erases.
const sharedRows = 200

// emptyMessages deletes some of the user's messages and their answers, as a user would, and
// returns how many.
func (stx *sessionTx) emptyMessages(owner, user string) (int, error) {
	rows, err := findRows[core.Message](stx.tx.Where(userMessagesSQL, userParams(owner, user)).Where("session_id = ?", stx.session.ID).Order("seq").Limit(sharedRows))
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	ids := idsOf(rows, func(m core.Message) core.MessageID { return m.ID })
	copies, err := count(stx.tx.Model(&core.Message{}).Where("origin_id IN ? AND deleted_at IS NULL", ids))
	if err == nil && copies > 0 {
		err = core.Errorf(core.ErrStale, "session %s was forked meanwhile", stx.session.ID)
	}
	if err != nil {
		return 0, err
	}
	// Before eraseAtoms, which copies the remaining columns into events.
	err = stx.tx.Model(&core.Message{}).Where("id IN ?", ids).UpdateColumn("client_message_id", nil).Error
	if err != nil {
		return 0, err
	}
	if stx.session.Speakers == core.UserSpeaker(user) {
		stx.session.Speakers = ""
	}
	return len(rows), stx.eraseAtoms(rows...)
}

// cancelRuns cancels the user's unfinished runs, whose messages are about to be erased.
func (stx *sessionTx) cancelRuns(owner, user string) error {
	rows, err := findRows[models.Run](stx.tx.Where(userRunsSQL, userParams(owner, user)).Where("session_id = ? AND status IN ('queued', 'running', 'waiting')", stx.session.ID).
		Order("queue_seq"))
	if err != nil {
		return err
	}
	for _, row := range rows {
		run := row.Core()
		if run.Status == core.RunQueued && run.Attempt == 0 {
			if err := stx.releaseUnsentFiles(run); err != nil {
				return err
			}
		}
		run = conversation.End(run, core.RunEnd{Status: core.RunCanceled})
		if err := stx.updateRun(run); err != nil {
			return err
		}
		stx.emitEvents(conversation.EndEvent(anonymizeRun(run)))
	}
	return nil
}

// emptyRuns erases the user's data from some runs, to which their events refer, and returns how many.
func (stx *sessionTx) emptyRuns(owner, user string) (int, error) {
	rows, err := findRows[models.Run](stx.tx.Where(userRunsSQL, userParams(owner, user)).Where("session_id = ?", stx.session.ID).Order("queue_seq").Limit(sharedRows))
	if err != nil {
		return 0, err
	}
	for _, row := range rows {
		empty := anonymizeRun(row.Core())
		addBytes(stx, -1, []core.Run{row.Run})
		err = stx.tx.Model(&models.Run{}).Where("id = ?", row.ID).UpdateColumns(map[string]any{
			"user_id": "", "input": models.EncodeJSON(empty.Input), "options": nil, "client_message_id": nil, "partial": "", "state": nil, "context": nil, "error": models.EncodeJSON(empty.Error),
			"webhook_url": "", "webhook_secret": "",
		}).Error
		if err != nil {
			return 0, err
		}
		if err := stx.tx.Where("run_id = ?", row.ID).Delete(&models.Delivery{}).Error; err != nil {
			return 0, err
		}
	}
	return len(rows), nil
}

func anonymizeRun(r core.Run) core.Run {
	r.User, r.ClientMessageID, r.RequestHash, r.Partial, r.State, r.Context, r.Webhook = "", "", "", "", nil, nil, nil
	if r.Input.DeletedAt == nil && !r.Input.Regenerate {
		now := core.Now()
		r.Input.DeletedAt = &now
	}
	r.Input = r.Input.Emptied()
	if r.Error != nil {
		r.Error = &core.RunError{Code: r.Error.Code, Message: "removed with the user"}
	}
	return r
}

// filesSQL selects the user's own files and those that messages of the user's sessions
// refer to, or that were uploaded for these: the files that a purge of the user considers.
const filesSQL = "SELECT id FROM blobs WHERE owner = @owner AND user_id = @user" +
	" UNION SELECT blob_id FROM blob_references WHERE session_id IN (" + userSessionsSQL + ")" +
	" UNION SELECT id FROM blobs WHERE session_id IN (" + userSessionsSQL + ")"

// Files returns up to limit files after that id ("" = from the first one).
func (r *Purges) Files(ctx context.Context, owner, user string, after core.BlobID, limit int) ([]core.Blob, error) {
	db := r.db.WithContext(ctx).Where("owner = @owner AND id IN ("+filesSQL+")", userParams(owner, user))
	if after != "" {
		db = db.Where("id > ?", after)
	}
	list, err := findAll(db.Order("id").Limit(limit), models.Blob.Core)
	return list, wrapError(err, "files of user", user)
}

// Elsewhere returns up to limit messages after that id ("" = from the first one) that the
// user wrote in sessions of others, with their revisions.
func (r *Purges) Elsewhere(ctx context.Context, owner, user string, after core.MessageID, limit int) ([]core.Message, error) {
	db := r.db.WithContext(ctx).Where(userMessagesSQL, userParams(owner, user)).Where("deleted_at IS NULL AND role = 'user'")
	if after != "" {
		db = db.Where("id > ?", after)
	}
	messages, err := findRows[core.Message](db.Order("id").Limit(limit))
	if err == nil {
		err = addRevisions(r.db.WithContext(ctx), messages)
	}
	return messages, wrapError(err, "messages of user", user)
}

// Keys returns the API keys of the owner, the oldest first.
func (r *Purges) Keys(ctx context.Context, owner string) ([]core.APIKey, error) {
	list, err := findAll(r.db.WithContext(ctx).Where("owner = ?", owner).Order("created_at, id"), models.APIKey.Core)
	return list, wrapError(err, "API keys of", owner)
}
