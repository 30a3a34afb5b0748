package repositories

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"sort"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/core/prompttext"
	"bobbin/app/core/standing"
	"bobbin/app/db/models"
)

// StandingInstructions stores what users set for whole conversations: what their messages say is
// found when it is first asked for, other instructions are added by hand. Safe for concurrent use.
type StandingInstructions struct{ db *gorm.DB }

// NewStandingInstructions returns the standing instructions in db.
func NewStandingInstructions(db *gorm.DB) *StandingInstructions { return &StandingInstructions{db: db} }

// onPathSQL selects the instructions of messages on the current path, and those added by hand,
// the newest first. Those that were added by hand while a message was the last one come after
// those of the message.
const onPathSQL = `SELECT i.*, m.author, m.author_id, COALESCE(m.named, false) AS named FROM standing_instructions i
JOIN sessions s ON s.id = i.session_id LEFT JOIN messages m ON m.id = i.message_id
WHERE i.session_id = @session AND (i.message_id IS NULL OR m.on_path AND m.seq <= s.last_seq AND m.seq <= @through)
ORDER BY i.seq DESC, CASE WHEN i.message_id IS NULL THEN 0 ELSE 1 END, i.number DESC, i.id DESC LIMIT @limit`

// OnPath returns the newest instructions of the session's current path, of its messages through the seq and
// those added by hand, at most as many as the limit, oldest first, without their states; those that only
// withdraw others are among them.
func (r *StandingInstructions) OnPath(ctx context.Context, tenant core.Tenant, session core.SessionID, through int64, limit int) ([]core.StandingInstruction, error) {
	var rows []struct {
		core.StandingInstruction
		Author   string
		AuthorID string
		Named    bool
	}
	if n, err := r.findLate(ctx, tenant, session, through); err != nil || n == 0 {
		return nil, err
	}
	db := byID(ctx, r.db, "session", session)
	if err := db.Raw(onPathSQL, map[string]any{"session": session, "through": through, "limit": limit}).Scan(&rows).Error; err != nil {
		return nil, wrapError(err, "standing instructions of session", session)
	}
	out := make([]core.StandingInstruction, 0, len(rows))
	for _, row := range slices.Backward(rows) {
		i := row.StandingInstruction
		m := core.Message{Role: core.RoleUser, Author: row.Author, AuthorID: row.AuthorID, Named: row.Named}
		i.Author, i.Speaker = prompttext.SpeakerName(m), core.SpeakerOf(m)
		out = append(out, i)
	}
	return out, nil
}

// What bounds the messages that are searched while their session is locked: how many, and their bytes but for the last one.
const (
	maxFindStep  = 1000
	maxFindBytes = 64 << 10
)

// findLate stores the instructions of the users' messages through the seq that were not searched for any, and
// returns how many the session has: most sessions end before a prompt has to list one.
func (r *StandingInstructions) findLate(ctx context.Context, tenant core.Tenant, session core.SessionID, through int64) (int, error) {
	for {
		var row struct {
			StandingCount    int
			LastSeq, Through int64
		}
		err := byID(ctx, r.db, "session", session).Model(&models.Session{}).Where(visibleTo(tenant)).Where("id = ?", session).
			Select("standing_count, last_seq, COALESCE((SELECT seq FROM session_readers WHERE session_id = sessions.id AND reader = ?), 0) AS through", models.ReaderStanding).
			Take(&row).Error
		behind := row.Through < min(row.LastSeq, through)
		if err == nil && behind {
			_, err = changeSession(ctx, r.db, session, (*sessionTx).findInstructions, visibleTo(tenant))
		}
		if err != nil || !behind {
			return row.StandingCount, wrapError(err, "session", session)
		}
	}
}

// unsearchedSQL selects users' messages. Earlier versions stored the instructions with their messages.
const unsearchedSQL = `SELECT id, session_id, owner, seq, content, created_at FROM messages WHERE id IN (SELECT id FROM (
	SELECT id, SUM(octet_length(content)) OVER (ORDER BY seq) - octet_length(content) AS before FROM messages m WHERE session_id = ? AND role = 'user' AND seq > ? AND seq <= ?
	AND NOT EXISTS (SELECT 1 FROM standing_instructions i WHERE i.message_id = m.id)) AS next WHERE before < ?) ORDER BY seq`

// findInstructions stores the instructions of the next messages.
func (stx *sessionTx) findInstructions() error {
	through, err := stx.foundThrough()
	if err != nil {
		return err
	}
	end, bytes := min(through+maxFindStep, stx.session.LastSeq), 0
	var messages []core.Message
	err = stx.tx.Raw(unsearchedSQL, stx.session.ID, through, end, maxFindBytes).Scan(&messages).Error
	var rows []core.StandingInstruction
	for _, m := range messages {
		rows, bytes = append(rows, instructionsOf(m)...), bytes+len(m.Content)
	}
	if bytes >= maxFindBytes {
		end = messages[len(messages)-1].Seq
	}
	if err == nil {
		err = stx.storeInstructions(rows)
	}
	if err != nil {
		return err
	}
	return stx.setFoundThrough(end)
}

// foundThrough returns the seq up to which users' messages were searched for instructions.
func (stx *sessionTx) foundThrough() (seq int64, err error) {
	err = stx.tx.Model(&models.SessionReader{}).Select("seq").Where("session_id = ? AND reader = ?", stx.session.ID, models.ReaderStanding).Scan(&seq).Error
	return seq, err
}

func (stx *sessionTx) setFoundThrough(seq int64) error {
	return stx.tx.Clauses(clause.OnConflict{UpdateAll: true}).
		Create(&models.SessionReader{SessionID: string(stx.session.ID), Reader: models.ReaderStanding, Owner: stx.session.Owner, Seq: seq}).Error
}

// Add stores an instruction after the last message of the session.
func (r *StandingInstructions) Add(ctx context.Context, tenant core.Tenant, in core.NewInstruction) (core.StandingInstruction, error) {
	row := core.StandingInstruction{
		ID: core.NewID[core.InstructionID](), SessionID: in.SessionID, Text: in.Text, Language: in.Language, Topic: in.Topic, CreatedAt: core.Now(),
	}
	err := commitOnce(ctx, func(note resultRecorder) error {
		_, err := changeSession(ctx, r.db, in.SessionID, func(stx *sessionTx) error {
			added, err := count(stx.tx.Model(&core.StandingInstruction{}).Where("session_id = ? AND message_id IS NULL", in.SessionID))
			if err == nil && added >= core.MaxAddedInstructions {
				err = core.Errorf(core.ErrUnprocessable, "the session has %d standing instructions that were added by hand: remove one first", added)
			}
			if err == nil {
				row.Owner, row.Seq = stx.session.Owner, stx.session.LastSeq
				err = stx.storeInstructions([]core.StandingInstruction{row})
			}
			if err != nil {
				return err
			}
			return note(stx.tx, string(row.ID))
		}, visibleTo(tenant))
		return err
	}, func(id string) (err error) {
		row, err = r.get(ctx, tenant, in.SessionID, core.InstructionID(id))
		return err
	})
	return row, wrapError(err, "session", in.SessionID)
}

// Edit replaces the text of an instruction; language and topic are those of the new text.
func (r *StandingInstructions) Edit(ctx context.Context, tenant core.Tenant, id core.InstructionID, in core.NewInstruction) (core.StandingInstruction, error) {
	err := r.change(ctx, tenant, in.SessionID, id, func(stx *sessionTx, row core.StandingInstruction) error {
		if row.Text == in.Text {
			return nil
		}
		stx.session.StoredBytes += int64(len(in.Text) - len(row.Text))
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
	return r.change(ctx, tenant, session, id, func(stx *sessionTx, row core.StandingInstruction) error {
		switch {
		case row.RemovedAt != nil:
			return nil
		case row.MessageID != "":
			return stx.tx.Model(&row).UpdateColumn("removed_at", core.Now()).Error
		}
		return stx.deleteInstructions(stx.tx.Where("id = ?", row.ID))
	})
}

// change changes an instruction with its session locked.
func (r *StandingInstructions) change(ctx context.Context, tenant core.Tenant, session core.SessionID, id core.InstructionID, change func(*sessionTx, core.StandingInstruction) error) error {
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

func findInstruction(db *gorm.DB, session core.SessionID, id core.InstructionID) (core.StandingInstruction, error) {
	return takeRow[core.StandingInstruction](byID(db.Statement.Context, db, "standing instruction", id).Where("id = ? AND session_id = ? AND NOT withdraws", id, session), "standing instruction", id)
}

// get returns an instruction without its state.
func (r *StandingInstructions) get(ctx context.Context, tenant core.Tenant, session core.SessionID, id core.InstructionID) (core.StandingInstruction, error) {
	db := r.db.WithContext(ctx)
	row, err := findInstruction(db, session, id)
	if err == nil {
		err = requireVisible(db, tenant, session)
	}
	return row, wrapError(err, "standing instruction", id)
}

// lineBreaks matches what ends a line.
var lineBreaks = regexp.MustCompile(`\r\n|[\n\r\v\f\x{85}\x{2028}\x{2029}]`)

// instructionRows bounds the rows of one statement.
const instructionRows = 250

// instructionsOf returns what the user's message says for the whole conversation.
func instructionsOf(m core.Message) []core.StandingInstruction {
	var rows []core.StandingInstruction
	for i, f := range standing.Find(m.Content) {
		rows = append(rows, core.StandingInstruction{
			ID: core.NewID[core.InstructionID](), SessionID: m.SessionID, Owner: m.Owner, MessageID: m.ID, Number: i + 1, Seq: m.Seq,
			Text: lineBreaks.ReplaceAllLiteralString(f.Text, " "), Language: f.Language, Topic: f.Topic, Withdraws: f.Withdraws, Amends: f.Amends, CreatedAt: m.CreatedAt,
		})
	}
	return rows
}

// storeInstructions inserts instructions. Of more than core.MaxInstructions the session keeps
// the newest.
func (stx *sessionTx) storeInstructions(rows []core.StandingInstruction) error {
	if len(rows) == 0 {
		return nil
	}
	if beyond := stx.session.StandingCount + len(rows) - core.MaxInstructions; beyond > 0 {
		oldest := stx.tx.Model(&core.StandingInstruction{}).Select("id").Where("session_id = ?", stx.session.ID).Order("seq, number, id").Limit(beyond)
		if err := stx.deleteInstructions(stx.tx.Where("id IN (?)", oldest)); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(rows, instructionRows) {
		if err := stx.change.Insert(&part); err != nil {
			return err
		}
	}
	stx.session.StandingCount += len(rows)
	addBytes(stx, 1, rows)
	return nil
}

// deleteInstructions deletes those of the query.
func (stx *sessionTx) deleteInstructions(which *gorm.DB) error {
	var rows []core.StandingInstruction
	err := which.Clauses(clause.Returning{}).Delete(&rows).Error
	stx.session.StandingCount -= len(rows)
	addBytes(stx, -1, rows)
	return err
}

// removeInstructions removes those of the messages.
func (stx *sessionTx) removeInstructions(messages []core.MessageID) error {
	for part := range slices.Chunk(messages, maxIDs) {
		if err := stx.deleteInstructions(stx.tx.Where("message_id IN ?", part)); err != nil {
			return err
		}
	}
	return nil
}

// copyInstructions copies those of copied messages to the fork, and those that were added by
// hand before the last of these.
func (stx *sessionTx) copyInstructions(source *sessionTx, copies map[core.MessageID]messageCopy) error {
	var rows, copied []core.StandingInstruction
	err := stx.tx.Where("session_id = ?", source.session.ID).Order("seq, number, id").Find(&rows).Error
	if err != nil {
		return err
	}
	through, failed := source.foundThrough()
	if err = errors.Join(err, failed); err != nil || through == 0 && len(rows) == 0 {
		return err
	}
	var seqs []int64 // of the originals
	err = stx.tx.Raw("SELECT o.seq FROM messages c JOIN messages o ON o.id = c.origin_id WHERE c.session_id = ? ORDER BY o.seq", stx.session.ID).Scan(&seqs).Error
	if err != nil {
		return err
	}
	copyOf := func(seq int64) int64 { // the last copied message up to it
		return int64(sort.Search(len(seqs), func(i int) bool { return seqs[i] > seq }))
	}
	for _, row := range rows {
		of := copies[row.MessageID]
		if row.MessageID == "" {
			of.seq = copyOf(row.Seq)
		}
		later := row.MessageID == "" && (len(seqs) == 0 && row.Seq > 0 || len(seqs) > 0 && row.Seq > seqs[len(seqs)-1])
		if row.MessageID != "" && of.seq == 0 || later {
			continue
		}
		row.ID, row.SessionID, row.MessageID, row.Seq = core.NewID[core.InstructionID](), stx.session.ID, of.id, of.seq
		copied = append(copied, row)
	}
	return errors.Join(stx.storeInstructions(copied), stx.setFoundThrough(copyOf(through)))
}
