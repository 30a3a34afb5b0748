package repositories

import (
	"maps"
	"slices"

	"bobbin/app/core"
)

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

// eraseApprovals clears the arguments, the comments and the results in the approvals of the tool
// calls.
func (stx *sessionTx) eraseApprovals(calls map[string]bool) error {
	for part := range slices.Chunk(slices.Sorted(maps.Keys(calls)), maxIDs) {
		err := stx.tx.Model(&core.Approval{}).Where("session_id = ? AND call_id IN ?", stx.session.ID, part).
			UpdateColumns(map[string]any{"arguments": "", "comment": "", "edited_arguments": "", "result": ""}).Error
		if err != nil {
			return err
		}
	}
	return nil
}
