package repositories

import (
	"context"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// GiveTitle gives the session a title that was made for it, unless it has one or
// had one before: what a user set, also to nothing, stays. The model calls are
// booked in any case. It returns the events, none if the title was not needed.
func (r *Sessions) GiveTitle(ctx context.Context, scope core.Scope, id core.SessionID, title string, calls []core.ModelCall) ([]core.Event, error) {
	var j *journal
	err := inTx(ctx, r.db, func(tx *gorm.DB) (err error) {
		if j, err = lockSession(tx, id, visible(scope)); err != nil {
			return err
		}
		if err := j.book(calls, ""); err != nil {
			return err
		}
		if j.session.Title != "" || j.session.TitledAt != nil || title == "" {
			return nil
		}
		if err := j.title(title); err != nil {
			return err
		}
		j.emit(core.NewEvent(id, "", core.EventSessionUpdated, core.SessionData{Session: j.session.Core()}))
		return j.close()
	})
	if err != nil {
		return nil, failure(err, "session", id)
	}
	return j.events, nil
}

// title sets the title where nobody has; the comparison in the statement is the
// last guard of it.
func (j *journal) title(title string) error {
	now := core.Now()
	changes, err := checked(map[string]any{"title": title, "titled_at": now})
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
	j.session.Title, j.session.TitledAt = title, &now
	return j.indexTitle()
}
