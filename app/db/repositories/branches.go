package repositories

import (
	"context"
	"math"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/core/conversation"
	"bobbin/app/db/commit"
	"bobbin/app/db/models"
)

// Branches changes the existing messages of a session's log: which branch is current, what
// is pinned, what is deleted; and it copies them. Runs accepts a run on a branch of its
// own. Safe for concurrent use.
type Branches struct{ db *gorm.DB }

// NewBranches returns the branches in db.
func NewBranches(db *gorm.DB) *Branches { return &Branches{db: db} }

// Select makes the branch through the message the current path, down to the newest message
// below it. On the current path it changes nothing. ErrConflict while the session has a
// run.
func (r *Branches) Select(ctx context.Context, tenant core.Tenant, session core.SessionID, id core.MessageID) (core.Session, []core.Event, error) {
	events, err := r.changeOnce(ctx, tenant, session, func(stx *sessionTx) error {
		m, err := stx.findMessage(id)
		if err != nil || m.OnPath {
			return err
		}
		if err := stx.checkIdle(); err != nil {
			return err
		}
		below, err := walkTree(stx.tx, toChildren, m.ID)
		if err != nil {
			return err
		}
		return stx.switchPath(pathChange{leaf: below[len(below)-1].ID, before: math.MaxInt64, why: "select"})
	})
	if err != nil {
		return core.Session{}, nil, err
	}
	selected, err := NewSessions(r.db).Get(ctx, tenant, session)
	return selected, events, err
}

// changeOnce is changeOnce for a session of the scope that is not busy.
func (r *Branches) changeOnce(ctx context.Context, tenant core.Tenant, session core.SessionID, fn func(*sessionTx) error) ([]core.Event, error) {
	return changeOnce(ctx, r.db, session, unlessBusy(fn), visibleTo(tenant))
}

// Pin pins or unpins a message and returns it. ErrUnprocessable for system messages, which
// are never in a prompt.
func (r *Branches) Pin(ctx context.Context, tenant core.Tenant, session core.SessionID, id core.MessageID, pinned bool) (core.Message, []core.Event, error) {
	return r.updateMessage(ctx, tenant, session, id, func(m *core.Message) (map[string]any, error) {
		if m.Pinned == pinned {
			return nil, nil
		}
		if m.Role == core.RoleSystem {
			return nil, core.Errorf(core.ErrUnprocessable, "message %s is from the system and never in the prompt", id)
		}
		m.Pinned = pinned
		return map[string]any{"pinned": pinned}, nil
	})
}

// UpdateMessage changes the metadata or the feedback of a message, and returns it. Metadata
// that Bobbin wrote stays.
func (r *Branches) UpdateMessage(ctx context.Context, tenant core.Tenant, session core.SessionID, id core.MessageID, p core.MessagePatch) (core.Message, []core.Event, error) {
	return r.updateMessage(ctx, tenant, session, id, func(m *core.Message) (map[string]any, error) {
		changes := map[string]any{}
		if p.Metadata != nil {
			merged, err := core.ReplaceMetadata(m.Metadata, p.Metadata)
			if err != nil {
				return nil, err
			}
			m.Metadata, changes["metadata"] = merged, models.JSON(merged)
		}
		if p.Feedback != nil {
			if m.Feedback = p.Feedback; p.Feedback.Rating == "" {
				m.Feedback = nil
			}
			changes["feedback"] = models.EncodeJSON(m.Feedback)
		}
		return changes, nil
	})
}

// updateMessage changes columns of a message that was not deleted, and emits
// message.updated; without changes it does nothing. It returns the message.
func (r *Branches) updateMessage(ctx context.Context, tenant core.Tenant, session core.SessionID, id core.MessageID,
	update func(*core.Message) (map[string]any, error),
) (core.Message, []core.Event, error) {
	var m core.Message
	events, err := r.changeOnce(ctx, tenant, session, func(stx *sessionTx) (err error) {
		if m, err = stx.findMessage(id); err != nil {
			return err
		}
		was := m
		changes, err := update(&m)
		if err != nil || len(changes) == 0 {
			return err
		}
		stx.emitMessage(core.EventMessageUpdated, m)
		stx.session.StoredBytes += m.StoredBytes() - was.StoredBytes()
		return stx.tx.Model(&core.Message{}).Where("id = ?", id).UpdateColumns(changes).Error
	})
	if err == nil && m.ID == "" { // an earlier execution of the request has committed it
		m, err = NewMessages(r.db).Get(ctx, tenant, session, id)
	}
	return m, events, wrapError(err, "message", id)
}

const siblingsSQL = "deleted_at IS NULL AND parent_id IN ?"

func (r *Messages) withBranches(db *gorm.DB, session core.SessionID, list []core.Message) error {
	var parents []models.Ref
	roots := false
	for _, m := range list {
		roots = roots || m.ParentID == ""
		parents = append(parents, models.Ref(m.ParentID))
	}
	var all, first []core.Message
	err := db.Select("id, parent_id, seq").Where(siblingsSQL, parents).Where(inLogOf, session).Order("seq").Find(&all).Error
	if err == nil && roots {
		err = db.Select("id, parent_id, seq").Where("session_id = ? AND parent_id IS NULL AND deleted_at IS NULL", session).
			Where(inLogOf, session).Order("seq").Find(&first).Error
	}
	if err != nil {
		return err
	}
	siblings := map[core.MessageID][]core.MessageID{}
	for _, m := range append(all, first...) {
		siblings[core.MessageID(m.ParentID)] = append(siblings[core.MessageID(m.ParentID)], core.MessageID(m.ID))
	}
	for i, m := range list {
		all := siblings[m.ParentID]
		if len(all) < 2 {
			continue
		}
		b := &core.Branch{Count: len(all)}
		for k, s := range all {
			switch {
			case s == m.ID:
				b.Index = k + 1
			case b.Index == 0:
				b.Previous = s
			case b.Next == "":
				b.Next = s
			}
		}
		list[i].Branch = b
	}
	return nil
}

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
		err = stx.tx.Where("message_id = ?", m.ID).Delete(&models.MessageVector{}).Error
	}
	if err == nil { // it is embedded anew: a call of the model that is under way for the session is outdated
		err = stx.tx.Exec("UPDATE session_readers SET seq = CASE WHEN seq < @seq THEN seq ELSE @seq END - 1, behind = true WHERE session_id = @session AND reader = @reader",
			map[string]any{"seq": m.Seq, "session": stx.session.ID, "reader": models.ReaderVectors}).Error
	}
	if err == nil && m.Seq <= indexed && !stx.session.Temporary {
		err = indexEntries(stx.tx, []entry{messageEntry(m, stx.session.UserID)})
	}
	if err == nil {
		err = stx.removeInstructions(ids)
	}
	through := int64(0)
	if err == nil {
		through, err = stx.foundThrough()
	}
	if err == nil && m.Seq <= through {
		err = stx.storeInstructions(instructionsOf(m))
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
	return commit.Insert(stx.tx, &all[len(all)-1])
}

// findRevisions returns the revisions of the messages, those of one oldest first.
func findRevisions(db *gorm.DB, ids []core.MessageID) ([]core.Revision, error) {
	return findIn[core.Revision](db.Order("message_id, number"), "message_id", ids)
}

// revisionBytesSQL is the size of a message's revisions.
const revisionBytesSQL = "CASE WHEN revised_at IS NOT NULL THEN (SELECT SUM(octet_length(r.content)) FROM message_revisions r WHERE r.message_id = messages.id) END"

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
