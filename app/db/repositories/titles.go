package repositories

import (
	"context"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// GiveTitle gives the session a title that was made for it, unless it has one or
// had one before: what a user set, also to nothing, stays. Nor is one given that was
// made of a message that has been deleted meanwhile. The model calls are booked in
// any case. It returns the events, none if the title was not needed.
func (r *Sessions) GiveTitle(ctx context.Context, scope core.Scope, t core.NewTitle) ([]core.Event, error) {
	var j *journal
	err := inTx(ctx, r.db, func(tx *gorm.DB) (err error) {
		if j, err = lockSession(tx, t.SessionID, visible(scope)); err != nil {
			return err
		}
		if err := j.book(t.Calls, ""); err != nil {
			return err
		}
		if j.session.Title != "" || j.session.TitledAt != nil || t.Title == "" {
			return nil
		}
		if there, err := j.there(t.Of); err != nil || !there {
			return err
		}
		if err := j.title(t); err != nil {
			return err
		}
		j.emit(core.NewEvent(t.SessionID, "", core.EventSessionUpdated, core.SessionData{Session: j.session.Core()}))
		return j.close()
	})
	if err != nil {
		return nil, failure(err, "session", t.SessionID)
	}
	return j.events, nil
}

// there reports whether none of the messages was deleted.
func (j *journal) there(ids []core.MessageID) (bool, error) {
	var deleted int64
	err := j.tx.Model(&models.Message{}).Where("id IN ? AND deleted_at IS NOT NULL", ids).Count(&deleted).Error
	return deleted == 0, err
}

// title sets the title where nobody has; the comparison in the statement is the
// last guard of it.
func (j *journal) title(t core.NewTitle) error {
	now := core.Now()
	row := models.Session{Title: t.Title, TitledAt: &now, TitleMade: true}
	if len(t.Of) > 0 {
		row.TitleMessageID = models.Ref(t.Of[0])
	}
	changes, err := checked(map[string]any{
		"title": row.Title, "titled_at": now, "title_made": true, "title_message_id": row.TitleMessageID,
	})
	if err != nil {
		return err
	}
	res := j.tx.Model(&models.Session{}).Where("id = ? AND title = '' AND titled_at IS NULL", j.session.ID).UpdateColumns(changes)
	if res.Error == nil && res.RowsAffected == 0 {
		return core.Errorf(core.ErrStale, "session %s was given a title by somebody else", j.session.ID)
	}
	if res.Error != nil {
		return res.Error
	}
	j.session.Title, j.session.TitledAt, j.session.TitleMade, j.session.TitleMessageID = row.Title, row.TitledAt, true, row.TitleMessageID
	return j.indexTitle()
}
