package repositories

import (
	"database/sql"
	"maps"
	"slices"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// eraseSummaries clears the content of summaries that covered one of the messages, and
// reports whether there were any. The messages are in the order of their seq.
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

// turnSQL counts whether the question is one of the messages, or is answered by one of
// them.
const turnSQL = `WITH RECURSIVE up (id, parent_id, role) AS (
	SELECT id, parent_id, role FROM messages WHERE id IN @ids
	UNION
	SELECT m.id, m.parent_id, m.role FROM messages m JOIN up ON m.id = up.parent_id WHERE up.role <> 'user')
SELECT COUNT(*) FROM up WHERE id = @question`

// eraseTitle removes the session's title if it was generated from the turn of one of the
// messages; the next answer generates a new one. A title that a user set stays. It reports
// whether the title was generated from the messages.
func (stx *sessionTx) eraseTitle(ids []core.MessageID) (bool, error) {
	if stx.session.TitleMessageID == "" {
		return false, nil
	}
	n, err := scan[int](stx.treeQuery().Raw(turnSQL, sql.Named("ids", ids), sql.Named("question", stx.session.TitleMessageID)))
	if err != nil || n == 0 {
		return false, err
	}
	if stx.session.TitleMade {
		stx.session.Title, stx.session.TitledAt = "", nil
	}
	stx.session.TitleMessageID, stx.session.TitleMade = "", false
	return true, nil
}

// eraseApprovals clears the arguments, the comments and the results in the approvals of the tool
// calls, and returns their ids.
func (stx *sessionTx) eraseApprovals(calls map[string]bool) ([]string, error) {
	var all []string
	for part := range slices.Chunk(slices.Sorted(maps.Keys(calls)), maxIDs) {
		asked := stx.tx.Model(&models.Approval{}).Where("session_id = ? AND call_id IN ?", stx.session.ID, part)
		var ids []string
		if err := asked.Pluck("id", &ids).Error; err != nil {
			return nil, err
		}
		if len(ids) == 0 {
			continue
		}
		err := stx.tx.Model(&models.Approval{}).Where("id IN ?", ids).UpdateColumns(map[string]any{"arguments": "", "comment": "", "edited_arguments": "", "result": ""}).Error
		if err != nil {
			return nil, err
		}
		all = append(all, ids...)
	}
	return all, nil
}
