package repositories

import (
	"context"
	"regexp"
	"slices"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/core/prompttext"
	"bobbin/app/db/models"
)

// StandingInstructions stores what users set for whole conversations. Those of messages are
// written with their messages (standing_found.go); this adds and changes some by hand. Safe
// for concurrent use.
type StandingInstructions struct {
	db *gorm.DB
}

// NewStandingInstructions returns the standing instructions in db.
func NewStandingInstructions(db *gorm.DB) *StandingInstructions { return &StandingInstructions{db: db} }

// onPathSQL selects the instructions of messages on the current path, and those added by hand,
// the newest first. Those that were added by hand while a message was the last one come after
// those of the message.
const onPathSQL = `SELECT i.*, m.author, m.author_id, COALESCE(m.named, false) AS named FROM standing_instructions i
JOIN sessions s ON s.id = i.session_id LEFT JOIN messages m ON m.id = i.message_id
WHERE i.session_id = @session AND (i.message_id IS NULL OR m.on_path AND m.seq <= s.last_seq)
ORDER BY i.seq DESC, CASE WHEN i.message_id IS NULL THEN 0 ELSE 1 END, i.number DESC, i.id DESC LIMIT @limit`

// OnPath returns the newest instructions of the session's current path, at most as many as the
// limit, oldest first, without their states; those that only withdraw others are among them.
func (r *StandingInstructions) OnPath(ctx context.Context, tenant core.Tenant, session core.SessionID, limit int) ([]core.StandingInstruction, error) {
	var rows []struct {
		models.StandingInstruction
		Author   string
		AuthorID string
		Named    bool
	}
	db := byID(ctx, r.db, "session", session)
	if err := db.Raw(onPathSQL, map[string]any{"session": session, "limit": limit}).Scan(&rows).Error; err != nil {
		return nil, wrapError(err, "standing instructions of session", session)
	}
	if len(rows) == 0 || rows[0].Owner != tenant.Owner || tenant.User != "" {
		if err := requireVisible(db, tenant, session); err != nil {
			return nil, err
		}
	}
	out := make([]core.StandingInstruction, 0, len(rows))
	for _, row := range slices.Backward(rows) {
		i := row.Core()
		m := core.Message{Role: core.RoleUser, Author: row.Author, AuthorID: row.AuthorID, Named: row.Named}
		i.Author, i.Speaker = prompttext.SpeakerName(m), core.SpeakerOf(m)
		out = append(out, i)
	}
	return out, nil
}

// Add stores an instruction after the last message of the session.
func (r *StandingInstructions) Add(ctx context.Context, tenant core.Tenant, in core.NewInstruction) (core.StandingInstruction, error) {
	row := models.StandingInstruction{
		ID: core.NewID[string](), SessionID: string(in.SessionID), Text: in.Text, Language: in.Language, Topic: in.Topic, CreatedAt: core.Now(),
	}
	id, repeated, err := commitOnce(ctx, func(note resultRecorder) error {
		return changeSession(ctx, r.db, in.SessionID, func(stx *sessionTx) error {
			var added int64
			err := stx.tx.Model(&models.StandingInstruction{}).Where("session_id = ? AND message_id IS NULL", in.SessionID).Count(&added).Error
			if err == nil && added >= core.MaxAddedInstructions {
				err = core.Errorf(core.ErrUnprocessable, "the session has %d standing instructions that were added by hand: remove one first", added)
			}
			if err == nil {
				row.Owner, row.Seq = stx.session.Owner, stx.session.LastSeq
				err = stx.storeInstructions([]models.StandingInstruction{row})
			}
			if err != nil {
				return err
			}
			return note(stx.tx, row.ID)
		}, visibleTo(tenant))
	})
	if err != nil {
		return core.StandingInstruction{}, wrapError(err, "session", in.SessionID)
	}
	if repeated {
		return r.get(ctx, tenant, in.SessionID, core.InstructionID(id))
	}
	return row.Core(), nil
}

// Edit replaces the text of an instruction; language and topic are those of the new text.
func (r *StandingInstructions) Edit(ctx context.Context, tenant core.Tenant, id core.InstructionID, in core.NewInstruction) (core.StandingInstruction, error) {
	err := r.change(ctx, tenant, in.SessionID, id, func(stx *sessionTx, row models.StandingInstruction) error {
		if row.Text == in.Text {
			return nil
		}
		return stx.tx.Model(&row).UpdateColumns(map[string]any{"text": in.Text, "language": in.Language, "topic": in.Topic, "amends": false, "edited_at": core.Now()}).Error
	})
	if err != nil {
		return core.StandingInstruction{}, err
	}
	return r.get(ctx, tenant, in.SessionID, id)
}

// Remove removes an instruction that was added by hand. One of a message is marked as
// removed, so that the earlier one that it replaced does not stand again. Removing it again
// changes nothing.
func (r *StandingInstructions) Remove(ctx context.Context, tenant core.Tenant, session core.SessionID, id core.InstructionID) error {
	return r.change(ctx, tenant, session, id, func(stx *sessionTx, row models.StandingInstruction) error {
		switch {
		case row.RemovedAt != nil:
			return nil
		case row.MessageID != "":
			return stx.tx.Model(&row).UpdateColumn("removed_at", core.Now()).Error
		}
		if err := stx.tx.Delete(&row).Error; err != nil {
			return err
		}
		return stx.recountInstructions()
	})
}

// change changes an instruction with its session locked.
func (r *StandingInstructions) change(ctx context.Context, tenant core.Tenant, session core.SessionID, id core.InstructionID, change func(*sessionTx, models.StandingInstruction) error) error {
	_, err := changeOnce(ctx, r.db, session, func(stx *sessionTx) error {
		row, err := findInstruction(stx.tx, session, id)
		if err == nil {
			err = change(stx, row)
		}
		stx.result = string(id)
		return wrapError(err, "standing instruction", id)
	}, visibleTo(tenant))
	return wrapError(err, "session", session)
}

func findInstruction(db *gorm.DB, session core.SessionID, id core.InstructionID) (models.StandingInstruction, error) {
	var row models.StandingInstruction
	err := byID(db.Statement.Context, db, "standing instruction", id).Where("id = ? AND session_id = ? AND NOT withdraws", id, session).Take(&row).Error
	return row, err
}

// get returns an instruction without its state.
func (r *StandingInstructions) get(ctx context.Context, tenant core.Tenant, session core.SessionID, id core.InstructionID) (core.StandingInstruction, error) {
	db := r.db.WithContext(ctx)
	row, err := findInstruction(db, session, id)
	if err == nil {
		err = requireVisible(db, tenant, session)
	}
	return row.Core(), wrapError(err, "standing instruction", id)
}

// lineBreaks matches what ends a line.
var lineBreaks = regexp.MustCompile(`\r\n|[\n\r\v\f\x{85}\x{2028}\x{2029}]`)
