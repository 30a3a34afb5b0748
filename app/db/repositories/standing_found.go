package repositories

import (
	"slices"
	"sort"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/core/standing"
	"bobbin/app/db/models"
)

// instructionRows bounds the rows of one statement.
const instructionRows = 250

// insertInstructions stores what users' messages say for the whole conversation, in the
// transaction that stores the messages.
func (stx *sessionTx) insertInstructions(messages []core.Message) error {
	var rows []models.StandingInstruction
	for _, m := range messages {
		rows = append(rows, instructionsOf(m)...)
	}
	return stx.storeInstructions(rows)
}

// instructionsOf returns what the message says for the whole conversation: nothing unless it
// is a user's.
func instructionsOf(m core.Message) []models.StandingInstruction {
	if m.Role != core.RoleUser {
		return nil
	}
	var rows []models.StandingInstruction
	for i, f := range standing.Find(m.Content) {
		rows = append(rows, models.StandingInstruction{
			ID: core.NewID[string](), SessionID: string(m.SessionID), Owner: m.Owner, MessageID: models.Ref(m.ID), Seq: m.Seq, Number: i + 1,
			Text: inOneLine(f.Text), Language: f.Language, Topic: f.Topic, Withdraws: f.Withdraws, Amends: f.Amends, CreatedAt: m.CreatedAt,
		})
	}
	return rows
}

// deleteInstructions deletes the instructions with the ids that the query selects.
func (stx *sessionTx) deleteInstructions(ids *gorm.DB) error {
	res := stx.tx.Where("id IN (?)", ids).Delete(&models.StandingInstruction{})
	stx.session.StandingCount -= int(res.RowsAffected)
	return res.Error
}

// storeInstructions inserts instructions. Of more than core.MaxInstructions the session keeps
// the newest.
func (stx *sessionTx) storeInstructions(rows []models.StandingInstruction) error {
	if len(rows) == 0 {
		return nil
	}
	if beyond := stx.session.StandingCount + len(rows) - core.MaxInstructions; beyond > 0 {
		oldest := stx.tx.Model(&models.StandingInstruction{}).Select("id").Where("session_id = ?", stx.session.ID).Order("seq, number, id").Limit(beyond)
		if err := stx.deleteInstructions(oldest); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(rows, instructionRows) {
		if err := stx.change.Insert(&part); err != nil {
			return err
		}
	}
	stx.session.StandingCount += len(rows)
	return nil
}

// recountInstructions counts the instructions of the session.
func (stx *sessionTx) recountInstructions() error {
	var n int64
	err := stx.tx.Model(&models.StandingInstruction{}).Where("session_id = ?", stx.session.ID).Count(&n).Error
	stx.session.StandingCount = int(n)
	return err
}

// removeInstructions removes those of the messages.
func (stx *sessionTx) removeInstructions(messages []models.Ref) error {
	removed := int64(0)
	for part := range slices.Chunk(messages, maxIDs) {
		res := stx.tx.Where("message_id IN ?", part).Delete(&models.StandingInstruction{})
		if res.Error != nil {
			return res.Error
		}
		removed += res.RowsAffected
	}
	if removed == 0 {
		return nil
	}
	return stx.recountInstructions()
}

// replaceInstructions replaces those of the message by those of its new text.
func (stx *sessionTx) replaceInstructions(m core.Message) error {
	if err := stx.removeInstructions([]models.Ref{models.Ref(m.ID)}); err != nil {
		return err
	}
	return stx.storeInstructions(instructionsOf(m))
}

// copyInstructions copies those of copied messages to the fork, and those that were added by
// hand before the last of these.
func (stx *sessionTx) copyInstructions(source *sessionTx, copies map[models.Ref]messageCopy) error {
	if source.session.StandingCount == 0 {
		return nil
	}
	var rows, copied []models.StandingInstruction
	err := stx.tx.Where("session_id = ?", source.session.ID).Order("seq, number, id").Find(&rows).Error
	if err != nil {
		return err
	}
	var seqs []int64 // of the originals
	if slices.ContainsFunc(rows, func(r models.StandingInstruction) bool { return r.MessageID == "" }) {
		err = stx.tx.Raw("SELECT o.seq FROM messages c JOIN messages o ON o.id = c.origin_id WHERE c.session_id = ? ORDER BY o.seq", stx.session.ID).Scan(&seqs).Error
		if err != nil {
			return err
		}
	}
	for _, row := range rows {
		of := copies[row.MessageID]
		if row.MessageID == "" {
			of.seq = int64(sort.Search(len(seqs), func(i int) bool { return seqs[i] > row.Seq }))
		}
		later := row.MessageID == "" && (len(seqs) == 0 && row.Seq > 0 || len(seqs) > 0 && row.Seq > seqs[len(seqs)-1])
		if row.MessageID != "" && of.seq == 0 || later {
			continue
		}
		row.ID, row.SessionID, row.MessageID, row.Seq = core.NewID[string](), stx.session.ID, models.Ref(of.id), of.seq
		copied = append(copied, row)
	}
	return stx.storeInstructions(copied)
}
