package repositories

import (
	"context"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// GiveTitle stores a generated title, unless the session has one or had one before: what a
// user set, even an empty title, stays. A title of a message that has been deleted, or edited
// since the run began, is dropped. The model calls are recorded in any case. It returns the
// events, none if the title was not needed.
func (r *Sessions) GiveTitle(ctx context.Context, tenant core.Tenant, t core.NewTitle) ([]core.Event, error) {
	var stx *sessionTx
	err := changeSession(ctx, r.db, t.SessionID, func(locked *sessionTx) error {
		stx = locked
		if err := stx.recordCalls(t.Calls, ""); err != nil {
			return err
		}
		if stx.session.Title != "" || stx.session.TitledAt != nil || t.Title == "" {
			return nil
		}
		if there, err := stx.areUnchanged(t.Of, t.RunID); err != nil || !there {
			return err
		}
		now := core.Now()
		stx.session.Title, stx.session.TitledAt, stx.session.TitleMade, stx.session.TitleMessageID = t.Title, &now, true, ""
		if len(t.Of) > 0 {
			stx.session.TitleMessageID = models.Ref(t.Of[0])
		}
		return stx.emitSession(t.RunID, core.SessionData{})
	}, visibleTo(tenant))
	if err != nil {
		return nil, wrapError(err, "session", t.SessionID)
	}
	return stx.events, nil
}

// areUnchanged reports whether none of the messages was deleted, or edited since the run
// began.
func (stx *sessionTx) areUnchanged(ids []core.MessageID, run core.RunID) (bool, error) {
	var changed int64
	err := stx.tx.Model(&models.Message{}).Where("id IN ?", ids).
		Where("deleted_at IS NOT NULL OR revised_at > (SELECT started_at FROM runs WHERE id = ?)", models.Ref(run)).Count(&changed).Error
	return changed == 0, err
}
