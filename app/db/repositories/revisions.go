package repositories

import (
	"context"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/core/conversation"
	"bobbin/app/db/models"
)

// Revise replaces the text of a user's message in place and keeps the old one as a revision.
// What was derived from the old text is erased as by Delete. The same text changes nothing.
// ErrConflict while the session has a run, also for a message that is queued;
// ErrUnprocessable for messages that are not a user's.
func (r *Branches) Revise(ctx context.Context, tenant core.Tenant, in core.ReviseMessage) (core.Message, []core.Event, error) {
	if err := requireID("message", in.MessageID); err != nil {
		return core.Message{}, nil, err
	}
	revised := make([]core.Message, 1)
	events, err := r.changeOnce(ctx, tenant, in.SessionID, func(stx *sessionTx) error {
		m, err := stx.findRevisable(in.MessageID)
		if err == nil && m.Content != in.Content {
			if err = stx.checkIdle(); err == nil {
				m, err = stx.replaceText(m, in)
			}
		}
		if err != nil {
			return err
		}
		revised[0] = m
		return addRevisions(stx.tx, revised)
	})
	if err == nil && revised[0].ID == "" { // an earlier execution of the request has committed it
		revised[0], err = NewMessages(r.db).Get(ctx, tenant, in.SessionID, in.MessageID)
	}
	return revised[0], events, wrapError(err, "message", in.MessageID)
}

// findRevisable returns a user's message of the session.
func (stx *sessionTx) findRevisable(id core.MessageID) (core.Message, error) {
	m, err := stx.findMessage(id)
	if err == nil && m.Role != core.RoleUser {
		return m, core.Errorf(core.ErrUnprocessable, "message %s is from the %s; only a user's message can be edited", id, m.Role)
	}
	if !isNotFound(err) {
		return m, err
	}
	queued, failed := count(stx.tx.Model(&models.Run{}).Where("session_id = ? AND user_message_id = ? AND status = 'queued'", stx.session.ID, id))
	if failed != nil {
		return m, failed
	}
	if queued > 0 {
		return m, conversation.Busy(stx.session.ID)
	}
	return m, err
}

// replaceText stores the new text and returns the message.
func (stx *sessionTx) replaceText(m core.Message, in core.ReviseMessage) (core.Message, error) {
	now, ids := core.Now(), []core.MessageID{m.ID}
	if err := stx.keepRevision(m, core.Revision{Content: m.Content, TokenCount: m.TokenCount, ReplacedAt: now}); err != nil {
		return m, err
	}
	m.Content, m.TokenCount, m.RevisedAt, m.FinishReason = in.Content, in.TokenCount, &now, ""
	stx.session.StoredBytes += int64(len(m.Content))
	err := stx.tx.Model(&core.Message{}).Where("id = ?", m.ID).UpdateColumns(map[string]any{"content": m.Content, "token_count": m.TokenCount, "revised_at": now, "finish_reason": ""}).Error
	indexed := int64(0)
	if err == nil {
		indexed, err = stx.lockIndex()
	}
	if err == nil {
		err = stx.tx.Where("message_id = ?", m.ID).Delete(&models.SearchEntry{}).Error
	}
	if err == nil {
		err = stx.dropVector(m)
	}
	if err == nil && m.Seq <= indexed && !stx.session.Temporary {
		err = indexEntries(stx.tx, []entry{messageEntry(m, stx.session.UserID)})
	}
	if err == nil {
		err = stx.removeInstructions(ids)
	}
	if err == nil && m.Role == core.RoleUser {
		err = stx.findRevised(m)
	}
	if err == nil {
		err = stx.eraseDerived(erasure{messages: []core.Message{m}}, "revise")
	}
	return m, err
}

// keepRevision adds a revision to those of the message, and drops the oldest beyond the
// limits.
func (stx *sessionTx) keepRevision(m core.Message, latest core.Revision) error {
	all, err := findRevisions(stx.tx, []core.MessageID{m.ID})
	if err != nil {
		return err
	}
	number := int64(1)
	if n := len(all); n > 0 {
		number = all[n-1].Number + 1
	}
	latest.MessageID, latest.Number, latest.SessionID, latest.Owner = m.ID, number, m.SessionID, m.Owner
	all = append(all, latest)
	if dropped := len(all) - len(core.KeptRevisions(all)); dropped > 0 {
		for _, row := range all[:dropped] {
			stx.session.StoredBytes -= int64(len(row.Content))
		}
		err := stx.tx.Where("message_id = ? AND number <= ?", m.ID, all[dropped-1].Number).Delete(&core.Revision{}).Error
		if err != nil {
			return err
		}
	}
	return insertRows(stx.tx, &all[len(all)-1])
}

// findRevisions returns the revisions of the messages, those of one oldest first.
func findRevisions(db *gorm.DB, ids []core.MessageID) ([]core.Revision, error) {
	return findIn[core.Revision](db.Order("message_id, number"), "message_id", ids)
}

// revisionBytesSQL is the size of a message's revisions.
const revisionBytesSQL = "CASE WHEN revised_at IS NOT NULL THEN (SELECT SUM(octet_length(r.content)) FROM message_revisions r WHERE r.message_id = messages.id) END"

// addRevisions sets the revisions of the messages that have some.
func addRevisions(db *gorm.DB, messages []core.Message) error {
	var ids []core.MessageID
	for _, m := range messages {
		if m.RevisedAt != nil {
			ids = append(ids, m.ID)
		}
	}
	rows, err := findRevisions(db, ids)
	of := map[core.MessageID][]core.Revision{}
	for _, row := range rows {
		of[row.MessageID] = append(of[row.MessageID], row)
	}
	for i, m := range messages {
		messages[i].Revisions = of[m.ID]
	}
	return err
}
