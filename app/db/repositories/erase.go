package repositories

import (
	"context"
	"database/sql"
	"encoding/hex"
	"math"
	"slices"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Delete is a user's own deletion of a message: its row stays in its place, and
// nothing of its content is left in it, in the run that answered it, in events, in
// the search index, in answers kept for requests that come again, or in any version
// of a summary that covered it; the session falls back to the newest version that
// ends before it. Its files go, too, if no other message has them. An assistant's
// message with tool calls and the results of these go together, whichever of them is
// named. Copies in forks stay. Deleting again changes nothing. ErrConflict while the
// session has a run.
func (r *Branches) Delete(ctx context.Context, scope core.Scope, session core.SessionID, id core.MessageID) ([]core.Event, error) {
	if err := known("message", id); err != nil {
		return nil, err
	}
	var j *journal
	err := inTx(ctx, r.db, func(tx *gorm.DB) (err error) {
		if j, err = lockSession(tx, session, visible(scope)); err != nil {
			return err
		}
		m, err := j.inLog(id)
		if err == nil && m == nil {
			err = notFound("message", id)
		}
		if err != nil || m.DeletedAt != nil {
			return err
		}
		if err := j.idle(); err != nil {
			return err
		}
		if err := j.erase(*m); err != nil {
			return err
		}
		return j.close()
	})
	if err != nil {
		return nil, failure(err, "message", id)
	}
	return j.events, nil
}

// erase deletes the message with the others of its atom.
func (j *journal) erase(m core.Message) error {
	ids, err := j.atom(m.ID)
	if err != nil {
		return err
	}
	var e erased
	if e.calls, err = j.callsOf(ids); err != nil {
		return err
	}
	if e.messages, err = j.eraseMessages(ids); err != nil {
		return err
	}
	if e.versions, err = j.eraseSummaries(e.messages[0]); err != nil {
		return err
	}
	if err := j.eraseInputs(ids); err != nil {
		return err
	}
	if err := j.eraseAnswers(ids); err != nil {
		return err
	}
	if err := j.eraseEvents(e); err != nil {
		return err
	}
	if err := j.fallBack(math.MaxInt64, "delete"); err != nil {
		return err
	}
	for _, m := range e.messages {
		j.emit(core.NewEvent(m.SessionID, m.RunID, core.EventMessageUpdated, core.MessageData{Message: m}))
	}
	j.touch()
	j.emit(core.NewEvent("", "", core.EventSessionUpdated, core.SessionData{Session: j.session.Core()}))
	return nil
}

// An atom is an assistant's message with the results of its tool calls, which come
// right after it.
const atomSQL = `WITH RECURSIVE up (id, parent_id, seq, role) AS (
	SELECT id, parent_id, seq, role FROM messages WHERE id = @m
	UNION ALL
	SELECT m.id, m.parent_id, m.seq, m.role FROM messages m JOIN up ON m.id = up.parent_id WHERE up.role = 'tool' AND m.role IN ('tool', 'assistant')),
head (id) AS (SELECT id FROM up ORDER BY seq LIMIT 1),
down (id, seq) AS (
	SELECT m.id, m.seq FROM messages m JOIN head ON m.id = head.id
	UNION ALL
	SELECT m.id, m.seq FROM messages m JOIN down ON m.parent_id = down.id WHERE m.role = 'tool')
SELECT id FROM down ORDER BY seq`

// atom returns the messages that belong inseparably to the one, itself included,
// in the order of their seq.
func (j *journal) atom(id core.MessageID) ([]models.Ref, error) {
	var ids []models.Ref
	err := j.tree().Raw(atomSQL, sql.Named("m", id)).Scan(&ids).Error
	return ids, err
}

// callsOf returns the ids of the tool calls in the messages.
func (j *journal) callsOf(ids []models.Ref) (map[string]bool, error) {
	var rows []models.Message
	if err := j.tx.Where("id IN ?", ids).Find(&rows).Error; err != nil {
		return nil, err
	}
	calls := map[string]bool{}
	for _, row := range rows {
		m, err := row.Core()
		if err != nil {
			return nil, err
		}
		for _, c := range m.ToolCalls {
			calls[c.ID] = true
		}
	}
	return calls, nil
}

// eraseMessages marks the messages as deleted, leaves nothing of their content, and
// returns them as they are then.
func (j *journal) eraseMessages(ids []models.Ref) ([]core.Message, error) {
	rows := j.tx.Model(&models.Message{}).Where("id IN ?", ids)
	err := rows.UpdateColumns(map[string]any{
		"content": "", "parts": nil, "tool_calls": nil, "tool_call_id": "", "tool_name": "", "author": "",
		"metadata": nil, "token_count": 0, "pinned": false, "deleted_at": gorm.Expr("COALESCE(deleted_at, ?)", core.Now()),
	}).Error
	if err == nil {
		err = j.tx.Where("message_id IN ?", ids).Delete(&models.SearchEntry{}).Error
	}
	if err == nil {
		err = j.unrefer(ids)
	}
	if err != nil {
		return nil, err
	}
	var gone []models.Message
	if err := j.tx.Where("id IN ?", ids).Order("seq").Find(&gone).Error; err != nil {
		return nil, err
	}
	return values(gone, models.Message.Core)
}

// A summary covers what lies on the way to its last message.
const belowSQL = `WITH RECURSIVE down (id) AS (
	SELECT id FROM messages WHERE id = @m
	UNION ALL
	SELECT m.id FROM messages m JOIN down ON m.parent_id = down.id)
SELECT id FROM down`

// eraseSummaries leaves nothing of the content of summaries that covered the
// message, and returns their versions. Notes on a tool loop are made with the question
// in view, which is the parent of the first message of the loop.
func (j *journal) eraseSummaries(m core.Message) (map[int]bool, error) {
	versions := map[int]bool{}
	var rows []models.Summary
	err := j.tx.Where("session_id = ? AND through_seq >= ? AND (kind = 'rolling' OR from_seq <= ? OR from_id IN (SELECT id FROM messages WHERE parent_id = ?))",
		j.session.ID, m.Seq, m.Seq, m.ID).Find(&rows).Error
	if err != nil || len(rows) == 0 {
		return versions, err
	}
	var below []models.Ref
	if err := j.tree().Raw(belowSQL, sql.Named("m", m.ID)).Scan(&below).Error; err != nil {
		return versions, err
	}
	covered := map[models.Ref]bool{}
	for _, id := range below {
		covered[id] = true
	}
	rows = slices.DeleteFunc(rows, func(s models.Summary) bool { return !covered[s.ThroughID] })
	ids := make([]string, 0, len(rows))
	for _, s := range rows {
		ids = append(ids, s.ID)
		versions[s.Version] = true
	}
	if len(ids) == 0 {
		return versions, nil
	}
	return versions, j.tx.Model(&models.Summary{}).Where("id IN ?", ids).UpdateColumns(map[string]any{
		"content": "", "focus": "", "token_count": 0, "state": core.SummaryErased, "note": "a message that it covered was deleted",
	}).Error
}

// eraseInputs empties the inputs of the runs that answered the messages.
func (j *journal) eraseInputs(ids []models.Ref) error {
	var rows []models.Run
	if err := j.tx.Where("session_id = ? AND user_message_id IN ?", j.session.ID, ids).Find(&rows).Error; err != nil {
		return err
	}
	for _, row := range rows {
		run, err := row.Core()
		if err != nil {
			return err
		}
		run.Input = emptied(run.Input)
		input := models.RunFrom(run).Input
		if err := j.tx.Model(&models.Run{}).Where("id = ?", row.ID).UpdateColumn("input", input).Error; err != nil {
			return err
		}
	}
	return nil
}

// eraseAnswers drops answers that are kept for requests that come again and have
// one of the messages in them.
func (j *journal) eraseAnswers(ids []models.Ref) error {
	text := "lower(hex(body))"
	if isPostgres(j.tx) {
		text = "encode(body, 'hex')"
	}
	for _, id := range ids {
		err := j.tx.Model(&models.IdempotencyKey{}).
			Where("owner = ? AND "+text+" LIKE ?", j.session.Owner, "%"+hex.EncodeToString([]byte(id))+"%").
			UpdateColumn("body", nil).Error
		if err != nil {
			return err
		}
	}
	return nil
}

// emptied returns an input without its content.
func emptied(in core.RunInput) core.RunInput {
	return core.RunInput{Source: in.Source, Edits: in.Edits, Regenerate: in.Regenerate}
}
