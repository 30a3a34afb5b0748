package repositories

import (
	"context"
	"math"

	"gorm.io/gorm"

	"bobbin/app/core"
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

// withBranches sets Branch on the messages that have siblings.
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
