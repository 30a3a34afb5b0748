package repositories

import (
	"context"
	"database/sql"
	"math"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Branches changes what there is of a session's log already: which branch is
// current, what is pinned, what was deleted, and copies of it. A run that begins
// on a branch of its own is accepted by Runs. Safe for concurrent use.
type Branches struct {
	db *gorm.DB
}

// NewBranches returns the branches in db.
func NewBranches(db *gorm.DB) *Branches { return &Branches{db: db} }

const leafSQL = `WITH RECURSIVE down (id, seq) AS (
	SELECT id, seq FROM messages WHERE id = @m
	UNION ALL
	SELECT m.id, m.seq FROM messages m JOIN down ON m.parent_id = down.id)
SELECT id FROM down ORDER BY seq DESC LIMIT 1`

// Select makes the branch through the message the current path, down to the newest
// message below it. On the current path it changes nothing. ErrConflict while the
// session has a run.
func (r *Branches) Select(ctx context.Context, scope core.Scope, session core.SessionID, id core.MessageID) (core.Session, []core.Event, error) {
	var j *journal
	err := r.change(ctx, scope, session, func(locked *journal) error {
		j = locked
		m, err := j.message(id)
		if err != nil || m.OnPath {
			return err
		}
		if err := j.idle(); err != nil {
			return err
		}
		var leaf models.Ref
		if err := j.tree().Raw(leafSQL, sql.Named("m", m.ID)).Scan(&leaf).Error; err != nil {
			return err
		}
		return j.turnTo(change{leaf: core.MessageID(leaf), before: math.MaxInt64, why: "select"})
	})
	if err != nil {
		return core.Session{}, nil, failure(err, "session", session)
	}
	return j.session.Core(), j.events, nil
}

// change locks the session, does what must be done, and writes it down.
func (r *Branches) change(ctx context.Context, scope core.Scope, session core.SessionID, do func(*journal) error) error {
	return inTx(ctx, r.db, func(tx *gorm.DB) error {
		j, err := lockSession(tx, session, visible(scope))
		if err == nil {
			err = do(j)
		}
		if err == nil {
			err = j.close()
		}
		return err
	})
}

// Pin pins a message or unpins it, and returns it. ErrUnprocessable for the
// system's messages, which no prompt holds.
func (r *Branches) Pin(ctx context.Context, scope core.Scope, session core.SessionID, id core.MessageID, pinned bool) (core.Message, []core.Event, error) {
	var m core.Message
	var j *journal
	err := r.change(ctx, scope, session, func(locked *journal) (err error) {
		j = locked
		if m, err = j.message(id); err != nil || m.Pinned == pinned {
			return err
		}
		if m.Role == core.RoleSystem {
			return core.Errorf(core.ErrUnprocessable, "message %s is from the system and never in the prompt", id)
		}
		m.Pinned = pinned
		j.emit(core.NewEvent(session, m.RunID, core.EventMessageUpdated, core.MessageData{Message: m}))
		return j.tx.Model(&models.Message{}).Where("id = ?", id).UpdateColumn("pinned", pinned).Error
	})
	if err != nil {
		return core.Message{}, nil, failure(err, "message", id)
	}
	return m, j.events, nil
}

const siblingsSQL = "deleted_at IS NULL AND parent_id IN ?"

// withBranches tells the messages that have siblings which of them they are.
func (r *Messages) withBranches(db *gorm.DB, session core.SessionID, list []core.Message) error {
	var parents []models.Ref
	roots := false
	for _, m := range list {
		roots = roots || m.ParentID == ""
		parents = append(parents, models.Ref(m.ParentID))
	}
	var all, first []models.Message
	err := db.Select("id, parent_id, seq").Where(siblingsSQL, parents).Order("seq").Find(&all).Error
	if err == nil && roots {
		err = db.Select("id, parent_id, seq").Where("session_id = ? AND parent_id IS NULL AND deleted_at IS NULL", session).
			Order("seq").Find(&first).Error
	}
	if err != nil {
		return err
	}
	siblings := map[core.MessageID][]core.MessageID{}
	for _, m := range append(all, first...) {
		siblings[core.MessageID(m.ParentID)] = append(siblings[core.MessageID(m.ParentID)], core.MessageID(m.ID))
	}
	for i, m := range list {
		list[i].Branch = branchOf(m.ID, siblings[m.ParentID])
	}
	return nil
}

// branchOf returns the place of a message among its siblings; nil if it has none.
func branchOf(id core.MessageID, all []core.MessageID) *core.Branch {
	if len(all) < 2 {
		return nil
	}
	b := &core.Branch{Count: len(all)}
	for i, s := range all {
		switch {
		case s == id:
			b.Index = i + 1
		case b.Index == 0:
			b.Previous = s
		case b.Next == "":
			b.Next = s
		}
	}
	return b
}
