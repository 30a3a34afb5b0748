package repositories

import (
	"slices"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// eraseSummaries leaves nothing of the content of summaries that covered one of the
// messages, and returns their versions. The messages are in the order of their seq.
//
// What a summary covers lies on the way to its last message. Notes on a tool loop are
// made with the question in view, which is the parent of the first message of the loop.
func (j *journal) eraseSummaries(messages []core.Message) (map[int]bool, error) {
	versions := map[int]bool{}
	var rows []models.Summary
	err := j.tx.Where("session_id = ? AND through_seq >= ?", j.session.ID, messages[0].Seq).Find(&rows).Error
	if err != nil || len(rows) == 0 {
		return versions, err
	}
	covers, err := j.covers(messages)
	if err != nil {
		return versions, err
	}
	rows = slices.DeleteFunc(rows, func(s models.Summary) bool { return !covers(s) })
	ids := make([]string, 0, len(rows))
	for _, s := range rows {
		ids = append(ids, s.ID)
		versions[s.Version] = true
	}
	for part := range slices.Chunk(ids, maxIDs) {
		err := j.tx.Model(&models.Summary{}).Where("id IN ?", part).UpdateColumns(map[string]any{
			"content": "", "focus": "", "token_count": 0, "state": core.SummaryErased, "note": "a message that it covered was deleted",
		}).Error
		if err != nil {
			return versions, err
		}
	}
	return versions, nil
}

// covers returns a function that reports whether a summary covers one of the
// messages.
func (j *journal) covers(messages []core.Message) (func(models.Summary) bool, error) {
	type place struct {
		ID, ParentID models.Ref
		Seq          int64
	}
	var rows []place
	err := j.tx.Model(&models.Message{}).Where("session_id = ? AND seq >= ?", j.session.ID, messages[0].Seq).Find(&rows).Error
	if err != nil {
		return nil, err
	}
	tree := make(map[models.Ref]place, len(rows))
	for _, row := range rows {
		tree[row.ID] = row
	}
	gone := make(map[models.Ref]bool, len(messages))
	for _, m := range messages {
		gone[models.Ref(m.ID)] = true
	}
	return func(s models.Summary) bool {
		for id := s.ThroughID; ; {
			if gone[id] {
				return true
			}
			m, ok := tree[id]
			if !ok || s.Kind == string(core.SummaryRun) && m.Seq < s.FromSeq {
				return false
			}
			id = m.ParentID
		}
	}, nil
}
