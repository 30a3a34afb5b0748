package repositories

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/hex"
	"maps"
	"math"
	"slices"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Delete is a user's own deletion of a message: its row stays in its place, and
// nothing of its content is left in it, in the run that answered it, in events, in
// the search index, in answers kept for requests that come again, in the title that
// was made of it, or in any version of a summary that covered it; the session falls
// back to the newest version that ends before it. Its files go, too, if no other
// message has them. An assistant's
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

// erase deletes the messages with the others of their atoms.
func (j *journal) erase(messages ...core.Message) error {
	ids, err := j.atoms(messages)
	if err != nil || len(ids) == 0 {
		return err
	}
	e := erased{}
	if e.calls, err = j.callsOf(ids); err != nil {
		return err
	}
	if e.messages, err = j.eraseMessages(ids); err != nil {
		return err
	}
	if e.versions, err = j.eraseSummaries(e.messages); err != nil {
		return err
	}
	if err := j.eraseInputs(ids); err != nil {
		return err
	}
	if e.title, err = j.eraseTitle(ids); err != nil {
		return err
	}
	asked, err := j.eraseApprovals(e.calls)
	if err != nil {
		return err
	}
	if err := j.eraseAnswers(append(ids, asked...), e.title != nil); err != nil {
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

// atoms returns the messages that belong inseparably to some, these included.
func (j *journal) atoms(messages []core.Message) ([]models.Ref, error) {
	var all []models.Ref
	seen := map[models.Ref]bool{}
	for _, m := range messages {
		ids := []models.Ref{models.Ref(m.ID)}
		if m.Role == core.RoleAssistant || m.Role == core.RoleTool {
			var err error
			if ids, err = j.atom(m.ID); err != nil {
				return nil, err
			}
		}
		for _, id := range ids {
			if !seen[id] {
				seen[id] = true
				all = append(all, id)
			}
		}
	}
	return all, nil
}

// callsOf returns the ids of the tool calls in the messages.
func (j *journal) callsOf(ids []models.Ref) (map[string]bool, error) {
	calls := map[string]bool{}
	for part := range slices.Chunk(ids, maxIDs) {
		var rows []models.Message
		if err := j.tx.Select("id, tool_calls").Where("id IN ?", part).Find(&rows).Error; err != nil {
			return nil, err
		}
		for _, row := range rows {
			m, err := row.Core()
			if err != nil {
				return nil, err
			}
			for _, c := range m.ToolCalls {
				calls[c.ID] = true
			}
		}
	}
	return calls, nil
}

// eraseMessages marks the messages as deleted, leaves nothing of their content, and
// returns them as they are then, in the order of their seq.
func (j *journal) eraseMessages(ids []models.Ref) ([]core.Message, error) {
	var all []core.Message
	for part := range slices.Chunk(ids, maxIDs) {
		err := j.tx.Model(&models.Message{}).Where("id IN ?", part).UpdateColumns(map[string]any{
			"content": "", "parts": nil, "tool_calls": nil, "tool_call_id": "", "tool_name": "", "author": "",
			"metadata": nil, "token_count": 0, "pinned": false, "deleted_at": gorm.Expr("COALESCE(deleted_at, ?)", core.Now()),
		}).Error
		if err == nil {
			err = j.tx.Where("message_id IN ?", part).Delete(&models.SearchEntry{}).Error
		}
		if err == nil {
			err = j.unrefer(part)
		}
		if err != nil {
			return nil, err
		}
		var rows []models.Message
		if err := j.tx.Where("id IN ?", part).Find(&rows).Error; err != nil {
			return nil, err
		}
		gone, err := values(rows, models.Message.Core)
		if err != nil {
			return nil, err
		}
		all = append(all, gone...)
	}
	slices.SortFunc(all, func(a, b core.Message) int { return cmp.Compare(a.Seq, b.Seq) })
	return all, nil
}

// eraseInputs empties the inputs of the runs that answered the messages.
func (j *journal) eraseInputs(ids []models.Ref) error {
	for part := range slices.Chunk(ids, maxIDs) {
		var rows []models.Run
		if err := j.tx.Where("session_id = ? AND user_message_id IN ?", j.session.ID, part).Find(&rows).Error; err != nil {
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
	}
	return nil
}

// few is up to how many messages the database is asked for each by its id; for more
// of them all is read.
const few = 16

// eraseAnswers drops answers that are kept for requests that come again and have
// one of the messages in them, or with session the session.
func (j *journal) eraseAnswers(ids []models.Ref, session bool) error {
	gone := make(map[string]bool, len(ids)+1)
	for _, id := range ids {
		gone[string(id)] = true
	}
	if session {
		gone[j.session.ID] = true
	}
	kept := j.tx.Where("owner = ? AND body IS NOT NULL", j.session.Owner)
	if len(gone) <= few {
		kept = kept.Where(j.mention(slices.Collect(maps.Keys(gone))))
	}
	last := ""
	for {
		var rows []models.IdempotencyKey
		if err := kept.Session(&gorm.Session{}).Where("key > ?", last).Order("key").Limit(answersPage).Find(&rows).Error; err != nil {
			return err
		}
		for _, row := range rows {
			last = row.Key
			if !mentions(row.Body, gone) {
				continue
			}
			err := j.tx.Model(&models.IdempotencyKey{}).Where("owner = ? AND key = ?", row.Owner, row.Key).UpdateColumn("body", nil).Error
			if err != nil {
				return err
			}
		}
		if len(rows) < answersPage {
			return nil
		}
	}
}

// mention is the condition that one of the ids is in the body of an answer.
func (j *journal) mention(ids []string) *gorm.DB {
	text := "lower(hex(body))"
	if isPostgres(j.tx) {
		text = "encode(body, 'hex')"
	}
	where := j.tx.Where("false")
	for _, id := range ids {
		where = where.Or(text+" LIKE ?", "%"+hex.EncodeToString([]byte(id))+"%")
	}
	return where
}

// mentions reports whether one of the ids is in the text.
func mentions(text []byte, ids map[string]bool) bool {
	return slices.ContainsFunc(anyID.FindAll(text, -1), func(id []byte) bool { return ids[string(id)] })
}

// emptied returns an input without its content.
func emptied(in core.RunInput) core.RunInput {
	return core.RunInput{Source: in.Source, Edits: in.Edits, Regenerate: in.Regenerate}
}
