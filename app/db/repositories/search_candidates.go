package repositories

import (
	"cmp"
	"slices"

	"bobbin/app/core/relevance"
	"bobbin/app/core/searchtext"
)

// findMembers returns the documents with each phrase and prefix, and adds them.
func (s *rankedSearch) findMembers() (map[int]map[int64]bool, error) {
	members := map[int]map[int64]bool{}
	for i, g := range s.question.Groups {
		if g.Term == nil {
			continue
		}
		entries, err := s.entriesWith([]searchtext.Group{g}, s.bounds.groupLeast)
		if err != nil {
			return nil, err
		}
		members[i] = make(map[int64]bool, len(entries))
		for _, e := range entries {
			members[i][e.N] = true
		}
		s.addEntries(entries, false)
	}
	return members, nil
}

// findCandidates adds the newest documents with each word that is not frequent, and those
// with all frequent words, and returns which groups count, the rarest, and how frequent each is.
func (s *rankedSearch) findCandidates(q relevance.Question) (relevance.Question, []int, error) {
	q, sample := q.KeepRarest(s.bounds.looked, q.Frequencies(s.documents), false)
	size, limit := len(s.documents), max(s.bounds.groupLeast, min(s.bounds.groupMost, s.bounds.groups/len(q.Groups))) // entries of each group
	var frequent []searchtext.Group
	for i, g := range q.Groups {
		if g.Term != nil {
			continue
		}
		if n := countWith(s.documents[:size], g); n*frequentShare > size {
			frequent = append(frequent, g)
			continue
		}
		sample[i] = 0
		entries, err := s.entriesWith([]searchtext.Group{g}, limit)
		if err != nil {
			return q, nil, err
		}
		s.addEntries(entries, false)
	}
	if len(frequent) > 1 && countWith(s.documents[:size], frequent...) < enoughWithAll {
		entries, err := s.entriesWith(frequent, limit)
		if err != nil {
			return q, nil, err
		}
		s.addEntries(entries, false)
	}
	if s.total <= 0 { // more than the index has, which makes no difference
		where, args := "owner = ?", []any{s.scope.Owner}
		for _, user := range []string{s.scope.User, s.q.UserID} {
			if user != "" {
				where, args = where+" AND user_id = ?", append(args, user)
			}
		}
		if s.q.SessionID != "" {
			where, args = where+" AND id = ?", append(args, s.q.SessionID)
		}
		err := s.db.Raw("SELECT COALESCE(SUM(last_seq), 0) FROM sessions WHERE "+where, args...).Scan(&s.total).Error
		s.total = max(s.total, int64(len(s.documents)))
		if err != nil {
			return q, nil, err
		}
	}
	out := q.Frequencies(s.documents)
	for i, n := range sample {
		if n > 0 {
			out[i] = max(out[i], int(int64(n)*s.total/int64(size)))
		}
	}
	q, out = q.KeepRarest(s.bounds.ranked, out, true)
	return q, out, nil
}

// countWith returns how many of the documents have all of the groups.
func countWith(documents []relevance.Document, groups ...searchtext.Group) int {
	n := 0
	for _, d := range documents {
		if !slices.ContainsFunc(groups, func(g searchtext.Group) bool { return g.Count(d.Terms) == 0 }) {
			n++
		}
	}
	return n
}

// addNeighbors adds the documents around the best results.
func (s *rankedSearch) addNeighbors(list []relevance.Result) error {
	list = slices.Clone(list[:min(len(list), s.bounds.exact)])
	slices.SortFunc(list, func(a, b relevance.Result) int {
		return cmp.Or(cmp.Compare(a.Session, b.Session), cmp.Compare(a.Seq, b.Seq))
	})
	var windows []window
	for _, r := range list {
		w := window{r.Session, r.Seq - windowReach, r.Seq + windowReach}
		if n := len(windows); n > 0 && windows[n-1].session == w.session && windows[n-1].to >= w.from {
			windows[n-1].to = w.to
			continue
		}
		windows = append(windows, w)
	}
	if len(windows) == 0 {
		return nil
	}
	s.budget = s.bounds.bytes
	with, args := windowsSQL(s.db, windows)
	where, more := s.entrySQL()
	entries, err := s.readEntries(with+" SELECT "+entryColumns+" FROM "+windowMessagesSQL(s.db)+" JOIN search_entries e ON e.message_id = m.id WHERE "+
		where+" ORDER BY e.session_id, e.seq", append(args, more...))
	s.addEntries(entries, s.isNarrowed())
	return err
}
