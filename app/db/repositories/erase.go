package repositories

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/core/conversation"
	"bobbin/app/db/models"
)

// Delete deletes a message on behalf of a user. Its row stays in place without content, and
// so do the run that answered it, events, the search index, stored answers of idempotent
// requests, the title generated from it, and all versions of a summary that covered it; the
// session falls back to the newest version that ends before it. Its files are removed
// unless another message refers to them. An assistant's message with tool calls is deleted
// together with their results, whichever is named. Copies in forks stay. Deleting it again
// changes nothing. ErrConflict while the session has a run. A message that was canceled
// while it was queued, and never entered the log, can be deleted at any time.
func (r *Branches) Delete(ctx context.Context, tenant core.Tenant, session core.SessionID, id core.MessageID) ([]core.Event, error) {
	events, err := r.changeOnce(ctx, tenant, session, func(stx *sessionTx) error {
		m, err := stx.findInLog(id)
		if err == nil && m == nil {
			return stx.eraseUnsent(id)
		}
		if err != nil || m.DeletedAt != nil {
			return err
		}
		if err := stx.checkIdle(); err != nil {
			return err
		}
		return stx.eraseAtoms(*m)
	})
	return events, wrapError(err, "message", id)
}

// eraseAtoms deletes the messages with the others of their atoms.
func (stx *sessionTx) eraseAtoms(messages ...core.Message) error {
	ids, err := stx.atomsOf(messages)
	if err != nil || len(ids) == 0 {
		return err
	}
	before, err := findIn[core.Message](stx.tx.Select("id, tool_calls"), "id", ids)
	if err != nil {
		return err
	}
	e := erasure{calls: map[string]bool{}}
	for _, m := range before {
		for _, c := range m.ToolCalls {
			e.calls[c.ID] = true
		}
	}
	if e.messages, err = stx.eraseMessages(ids); err != nil {
		return err
	}
	return stx.eraseDerived(e, "delete")
}

// eraseDerived erases what was derived from the former content of the messages, and falls
// back to what is valid without it. It emits the changed messages and the session; why is
// the trigger of a restored summary.
func (stx *sessionTx) eraseDerived(e erasure, why string) error {
	ids := idsOf(e.messages, func(m core.Message) core.MessageID { return m.ID })
	covered, err := stx.eraseSummaries(e.messages)
	if err != nil {
		return err
	}
	rows, err := findIn[models.Run](stx.tx.Where("session_id = ?", stx.session.ID), "user_message_id", ids)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if !row.Input.Empty() || row.Options != nil || row.RequestHash != "" {
			if err := stx.eraseInput(row.Run); err != nil {
				return err
			}
		}
	}
	title := stx.session.TitleMessageID
	if err := stx.eraseTitle(ids); err != nil {
		return err
	}
	for part := range slices.Chunk(slices.Sorted(maps.Keys(e.calls)), maxIDs) {
		err := stx.tx.Model(&core.Approval{}).Where("session_id = ? AND call_id IN ?", stx.session.ID, part).
			UpdateColumns(map[string]any{"arguments": "", "comment": "", "edited_arguments": "", "result": ""}).Error
		if err != nil {
			return err
		}
	}
	mentioned := ids
	if covered || title != stx.session.TitleMessageID || len(e.calls) > 0 { // the answers about the session may have these
		mentioned = append(ids, core.MessageID(stx.session.ID))
	}
	if err := eraseAnswers(stx.tx, stx.session.Owner, mentioned); err != nil {
		return err
	}
	if err := stx.eraseEvents(e); err != nil {
		return err
	}
	if err := stx.fallBack(math.MaxInt64, why); err != nil {
		return err
	}
	for _, m := range e.messages {
		stx.emitMessage(core.EventMessageUpdated, m)
	}
	stx.setUpdatedAt()
	return stx.emitSession("", core.SessionData{})
}

// atomOf returns the messages of the atom that the message belongs to, in the order of
// their seq: an assistant's message with the results of its tool calls, which directly follow it.
func (stx *sessionTx) atomOf(id core.MessageID) (atom []core.MessageID, err error) {
	list, err := walkTree(stx.tx, toParent+" AND walked.role = 'tool' AND m.role IN ('tool', 'assistant')", id)
	if err == nil {
		list, err = walkTree(stx.tx, toChildren+" AND m.role = 'tool'", list[0].ID)
	}
	return idsOf(list, pathNode.id), err
}

func (stx *sessionTx) atomsOf(messages []core.Message) ([]core.MessageID, error) {
	var all []core.MessageID
	known := map[core.MessageID]bool{}
	for _, m := range messages {
		ids := []core.MessageID{m.ID}
		if m.Role == core.RoleAssistant || m.Role == core.RoleTool {
			var err error
			if ids, err = stx.atomOf(m.ID); err != nil {
				return nil, err
			}
		}
		for _, id := range ids {
			if !known[id] {
				known[id] = true
				all = append(all, id)
			}
		}
	}
	return all, nil
}

// eraseMessages marks the messages as deleted, clears their content, and returns them as
// they are then, in the order of their seq.
func (stx *sessionTx) eraseMessages(ids []core.MessageID) ([]core.Message, error) {
	if _, err := stx.lockIndex(); err != nil {
		return nil, err
	}
	for part := range slices.Chunk(ids, maxIDs) {
		stored, err := stx.countStored("id IN ?", part)
		if err != nil {
			return nil, err
		}
		stx.session.StoredBytes -= stored - int64(len(part)*core.StoredRow)
		err = stx.tx.Model(&core.Message{}).Where("id IN ?", part).UpdateColumns(map[string]any{
			"content": "", "parts": nil, "tool_calls": nil, "tool_call_id": "", "tool_name": "", "author": "", "author_id": "",
			"metadata": nil, "feedback": nil, "token_count": 0, "pinned": false, "revised_at": nil, "deleted_at": gorm.Expr("COALESCE(deleted_at, ?)", core.Now()),
		}).Error
		for _, rows := range []any{&models.SearchEntry{}, &models.MessageVector{}, &core.Revision{}} {
			if err == nil {
				err = stx.tx.Where("message_id IN ?", part).Delete(rows).Error
			}
		}
		if err == nil {
			err = stx.unlinkBlobs(part)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := stx.removeInstructions(ids); err != nil {
		return nil, err
	}
	rows, err := findIn[core.Message](stx.tx, "id", ids)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(rows, func(a, b core.Message) int { return cmp.Compare(a.Seq, b.Seq) })
	return rows, nil
}

func (stx *sessionTx) eraseInput(run core.Run) error {
	addBytes(stx, -1, []core.Run{run})
	return stx.tx.Model(&models.Run{}).Where("id = ?", run.ID).
		UpdateColumns(map[string]any{"input": models.EncodeJSON(run.Input.Emptied()), "options": nil, "request_hash": ""}).Error
}

// eraseUnsent deletes a message that only its run has: it was canceled while it was queued.
func (stx *sessionTx) eraseUnsent(id core.MessageID) error {
	row, err := findFirst[models.Run](stx.tx.Where("user_message_id = ? AND session_id = ?", id, stx.session.ID))
	if err != nil {
		return err
	}
	if row == nil {
		return notFound("message", id)
	}
	run := row.Run
	switch {
	case run.Input.DeletedAt != nil:
		return nil
	case !run.Status.Ended():
		return conversation.Busy(stx.session.ID)
	}
	now := core.Now()
	run.Input.DeletedAt = &now
	ids := []core.MessageID{id}
	if err := stx.eraseInput(run); err != nil {
		return err
	}
	if err := stx.unlinkBlobs(ids); err != nil {
		return err
	}
	if err := eraseAnswers(stx.tx, stx.session.Owner, ids); err != nil {
		return err
	}
	run.Input = run.Input.Emptied()
	stx.emitMessage(core.EventMessageUpdated, run.UserMessage())
	return nil
}

// erasure is what a deletion or an edit erased.
type erasure struct {
	messages []core.Message  // as they are now
	calls    map[string]bool // ids of their tool calls
}

// eraseEventsSQL erases what calls were about from the events between the first one and the end of a run.
const eraseEventsSQL = `UPDATE session_events SET data = %s WHERE session_id = @s AND event_seq >= @first AND event_seq <= COALESCE(
	(SELECT e.event_seq FROM session_events e WHERE e.session_id = @s AND e.event_seq >= @first AND e.run_id = @run
	AND e.type IN ('run.succeeded', 'run.failed', 'run.canceled') ORDER BY e.event_seq LIMIT 1), @last)
AND type IN ('tool.started', 'tool.finished', 'approval.requested', 'approval.decided')
AND (data ->> 'tool_call_id' IN @calls OR data -> 'approval' ->> 'tool_call_id' IN @calls)`

// eraseEvents erases the deleted content from the events of tools of the messages' runs. Other
// events refer to messages, and contain none.
func (stx *sessionTx) eraseEvents(e erasure) error {
	if len(e.calls) == 0 {
		return nil
	}
	erased := "CASE WHEN type LIKE 'tool.%' THEN json_set(data, '$.arguments', '', '$.preview', '') " +
		"ELSE json_set(data, '$.approval.arguments', '', '$.approval.edited_arguments', '', '$.approval.comment', '') END"
	if isPostgres(stx.tx) {
		erased = `CAST(CASE WHEN type LIKE 'tool.%' THEN CAST(data AS jsonb) || CAST('{"arguments": "", "preview": ""}' AS jsonb)
			ELSE jsonb_set(CAST(data AS jsonb), '{approval}', (CAST(data AS jsonb) -> 'approval') || CAST('{"arguments": "", "edited_arguments": "", "comment": ""}' AS jsonb)) END AS json)`
	}
	ids := idsOf(e.messages, func(m core.Message) models.Ref { return models.Ref(m.RunID) })
	slices.Sort(ids)
	runs, err := findIn[models.Run](stx.tx.Select("id", "first_event_seq"), "id", slices.Compact(ids))
	for _, run := range runs {
		for calls := range slices.Chunk(slices.Sorted(maps.Keys(e.calls)), maxIDs) {
			if err == nil {
				err = stx.tx.Exec(fmt.Sprintf(eraseEventsSQL, erased), map[string]any{
					"s": stx.session.ID, "run": run.ID, "first": run.FirstEvent, "last": stx.session.LastEventSeq, "calls": calls,
				}).Error
			}
		}
	}
	return err
}

// eraseSummaries clears the content of summaries that covered one of the messages, which are in the order of their seq,
// and reports whether there were any.
//
// What a summary covers lies on the path to its last message. The model that writes notes
// on a tool loop also sees the question, which is the parent of the loop's first message.
func (stx *sessionTx) eraseSummaries(messages []core.Message) (bool, error) {
	rows, err := findRows[core.Summary](stx.tx.Select("id, version, kind, through_id, from_seq, content").
		Where("session_id = ? AND through_seq >= ?", stx.session.ID, messages[0].Seq))
	if err != nil || len(rows) == 0 {
		return false, err
	}
	covers, err := stx.summaryCoverage(messages)
	if err != nil {
		return false, err
	}
	rows = slices.DeleteFunc(rows, func(s core.Summary) bool { return !covers(s) })
	addBytes(stx, -1, rows)
	addBytes(stx, 1, make([]core.Summary, len(rows)))
	for part := range slices.Chunk(idsOf(rows, func(s core.Summary) core.SummaryID { return s.ID }), maxIDs) {
		err := stx.tx.Model(&core.Summary{}).Where("id IN ?", part).UpdateColumns(map[string]any{
			"content": "", "focus": "", "token_count": 0, "state": core.SummaryErased, "native": nil, "note": "a message that it covered was deleted or edited",
		}).Error
		if err != nil {
			return false, err
		}
	}
	return len(rows) > 0, nil
}

// summaryCoverage returns a function that reports whether a summary covers one of the
// messages.
func (stx *sessionTx) summaryCoverage(messages []core.Message) (func(core.Summary) bool, error) {
	type place struct {
		ID, ParentID core.MessageID
		Seq          int64
	}
	rows, err := findRows[place](stx.tx.Model(&core.Message{}).Where("session_id = ? AND seq >= ?", stx.session.ID, messages[0].Seq))
	if err != nil {
		return nil, err
	}
	tree := make(map[core.MessageID]place, len(rows))
	for _, row := range rows {
		tree[row.ID] = row
	}
	gone := make(map[core.MessageID]bool, len(messages))
	for _, m := range messages {
		gone[m.ID] = true
	}
	return func(s core.Summary) bool {
		for id := s.ThroughID; ; {
			if gone[id] {
				return true
			}
			m, ok := tree[id]
			if !ok || s.Kind == core.SummaryRun && m.Seq < s.FromSeq {
				return false
			}
			id = m.ParentID
		}
	}, nil
}

// eraseTitle removes the session's title if it was generated from the turn of one of the
// messages; the next answer generates a new one. A title that a user set stays.
func (stx *sessionTx) eraseTitle(ids []core.MessageID) error {
	if stx.session.TitleMessageID == "" {
		return nil
	}
	turns, err := walkTree(stx.tx, toQuestion, ids...)
	if err != nil || !slices.Contains(idsOf(turns, pathNode.id), core.MessageID(stx.session.TitleMessageID)) {
		return err
	}
	if stx.session.TitleMade {
		stx.session.Title, stx.session.TitledAt = "", nil
	}
	stx.session.TitleMessageID, stx.session.TitleMade = "", false
	return nil
}
