package repositories

import (
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/searchtext"
	"bobbin/app/db/models"
)

// aroundReach is how far away in seq a neighbor may be: messages of other branches are in
// between.
const aroundReach = 8

// addAround sets the neighbors of the hits that the query asks for.
func (s *messageSearch) addAround(hits []core.SearchHit) error {
	if len(hits) == 0 || s.q.Around <= 0 {
		return nil
	}
	n := min(s.q.Around, core.MaxAround)
	rows, err := s.loadAround(hits)
	if err != nil {
		return err
	}
	for i := range hits {
		h := &hits[i]
		list := rows[h.SessionID]
		at, found := slices.BinarySearchFunc(list, h.Seq, func(n core.Neighbor, seq int64) int { return int(n.Seq - seq) })
		h.Before = slices.Clone(list[max(0, at-n):at])
		if found {
			at++
		}
		h.After = slices.Clone(list[at:min(len(list), at+n)])
		isFar := func(n core.Neighbor) bool { return n.Seq < h.Seq-aroundReach || n.Seq > h.Seq+aroundReach }
		h.Before, h.After = slices.DeleteFunc(h.Before, isFar), slices.DeleteFunc(h.After, isFar)
	}
	return nil
}

// loadAround returns the messages with a text around the hits, by session and in order.
func (s *messageSearch) loadAround(hits []core.SearchHit) (map[core.SessionID][]core.Neighbor, error) {
	var windows []window
	for _, h := range hits {
		windows = append(windows, window{string(h.SessionID), h.Seq - aroundReach, h.Seq + aroundReach})
	}
	with, args := windowsSQL(s.db, windows)
	var rows []models.Message
	err := s.db.Raw(with+`
		SELECT DISTINCT m.id, m.session_id, m.seq, m.role, m.author, substr(m.content, 1, 2000) AS content, m.tool_name, m.created_at
		FROM w CROSS JOIN messages m JOIN sessions s ON s.id = m.session_id
		WHERE m.session_id = w.session_id AND m.seq BETWEEN w.first AND w.final AND m.on_path AND m.deleted_at IS NULL
		AND m.seq <= s.last_seq AND m.owner = ? AND m.role <> 'system' AND m.content <> '' ORDER BY m.session_id, m.seq`, append(args, s.scope.Owner)...).Scan(&rows).Error
	if err != nil {
		return nil, err
	}
	size := s.q.Excerpt
	if size <= 0 {
		size = core.DefaultExcerpt
	}
	out := map[core.SessionID][]core.Neighbor{}
	for _, r := range rows {
		if r.ToolName == core.ToolSearchHistory {
			continue
		}
		n := core.Neighbor{MessageID: core.MessageID(r.ID), Seq: r.Seq, Role: core.Role(r.Role), Author: r.Author, CreatedAt: r.CreatedAt.UTC()}
		n.Excerpt, _ = searchtext.Excerpt(r.Content, nil, size)
		id := core.SessionID(r.SessionID)
		out[id] = append(out[id], n)
	}
	return out, nil
}
