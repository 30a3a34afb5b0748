package repositories

import (
	"cmp"
	"math"
	"slices"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/relevance"
	"bobbin/app/core/searchtext"
)

// searchBounds is how much a ranked search reads, in entries. It is the same on both
// databases.
type searchBounds struct {
	ofSession  int // the newest entries of a session; a larger one is searched like an owner's sessions
	ofOwner    int // the newest entries otherwise
	groups     int // entries of all words together that are not frequent …
	groupLeast int // … and of each
	groupMost  int
	exact      int // results whose neighbors are read
	looked     int // groups whose entries are looked for, the rarest, …
	ranked     int // … and which count
	bytes      int // of terms of the newest entries, of those of all words, and of neighbors
}

func defaultBounds() searchBounds {
	return searchBounds{ofSession: 5_000, ofOwner: 1_000, groups: 4_000, groupLeast: 100, groupMost: 1_000, exact: 60, looked: 32, ranked: 16, bytes: 16 << 20}
}

const (
	frequentShare = 50 // one entry of so many has a frequent word, which is not looked for beyond the newest
	enoughWithAll = 20 // of the newest entries with all frequent words: no more are looked for
	windowReach   = 2 * relevance.Neighbors
)

// searchEntry is an entry of the index for ranking.
type searchEntry struct {
	N         int64
	SessionID string
	MessageID string
	Seq       int64
	CreatedAt time.Time
	Length    int
	Terms     []byte
}

// rankedSearch is one search for the best messages. The messages in the order of their
// scores are a list; a page is a part of it.
type rankedSearch struct {
	messageSearch

	bounds   searchBounds
	question searchtext.Question
	total    int64 // messages in the scope; 0 = to be counted, on the first page

	documents []relevance.Document
	messages  map[int64]string // the documents' messages
	known     map[relevance.Place]bool
	last      string // the newest message among the documents, by id
}

// parseQuestion parses the text of the query.
func (s *rankedSearch) parseQuestion() (err error) {
	s.question, err = searchtext.ParseQuestion(s.q.Text)
	s.must = s.question.Must
	return err
}

// readRanked returns a page.
func (s *rankedSearch) readRanked(limit int) (core.SearchPage, error) {
	from := s.from
	s.newest, s.total, s.from = from.ID, max(0, from.M), position{}
	list, err := s.rankEntries()
	if err != nil {
		return core.SearchPage{}, err
	}
	p := core.SearchPage{Page: core.Page[core.SearchHit]{Items: []core.SearchHit{}}}
	list = slices.DeleteFunc(list, func(r relevance.Result) bool { return s.q.Except[r.Seq] })
	if list, err = s.allowedResults(list); err != nil {
		return p, err
	}
	if err := s.boostMentioned(list[:min(len(list), maxBoosted)]); err != nil {
		return p, err
	}
	p.Total = new(len(list))
	at := indexAfter(from, list, s.messageOf)
	if !from.isSet() {
		at = min(max(0, s.q.Skip), len(list))
	}
	for examined := 0; at < len(list) && len(p.Items) < limit && examined <= maxExamined; {
		part := list[at:min(len(list), at+limit)]
		found, err := s.allowedMessages(idsOf(part, s.messageOf))
		if err != nil {
			return p, err
		}
		for _, r := range part {
			if len(p.Items) == limit {
				break
			}
			if err := s.db.Statement.Context.Err(); err != nil {
				return p, err
			}
			at, examined = at+1, examined+1
			f := found[s.messages[r.ID]]
			if f == nil {
				continue
			}
			if hit, ok := s.newHit(*f, s.question.FindWords); ok {
				hit.Score = math.Round(r.Score*1e4) / 1e4
				p.Items = append(p.Items, hit)
			}
		}
	}
	if at < len(list) {
		p.NextCursor = position{List: "relevance", N: int64(at), ID: cmp.Or(s.newest, s.last), M: s.total, Key: s.messageOf(list[at-1])}.encodeCursor()
	}
	return p, nil
}

// allowedResults returns the results of the agent and the author of the query, which the index
// does not have.
func (s *rankedSearch) allowedResults(list []relevance.Result) ([]relevance.Result, error) {
	if s.q.Agent == "" && s.q.Author == "" {
		return list, nil
	}
	sql, args := s.allowedSQL()
	allowed := map[string]bool{}
	for part := range slices.Chunk(list, maxIDs) {
		ids, err := scan[[]string](s.db.Raw("SELECT m.id FROM messages m JOIN sessions s ON s.id = m.session_id WHERE m.id IN ? AND "+sql,
			append([]any{idsOf(part, s.messageOf)}, args...)...))
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			allowed[id] = true
		}
	}
	return slices.DeleteFunc(list, func(r relevance.Result) bool { return !allowed[s.messageOf(r)] }), nil
}

// messageOf returns the id of a result's message.
func (s *rankedSearch) messageOf(r relevance.Result) string { return s.messages[r.ID] }

// rankEntries returns all results in order.
func (s *rankedSearch) rankEntries() ([]relevance.Result, error) {
	limit := s.bounds.ofOwner
	if s.q.SessionID != "" {
		limit = s.bounds.ofSession
	}
	s.known, s.messages = map[relevance.Place]bool{}, map[int64]string{}
	s.budget = s.bounds.bytes
	newest, err := s.newestEntries(limit)
	if err != nil {
		return nil, err
	}
	isWhole := len(newest) < limit && !s.isCut
	s.addEntries(newest, false)
	s.budget = s.bounds.bytes / (1 + len(s.question.Groups))
	r := relevance.Ranking{Question: relevance.Question{Groups: s.question.Groups}, Mean: relevance.MeanLength(s.documents)}
	if r.Members, err = s.findMembers(); err != nil {
		return nil, err
	}
	var frequencies []int
	if isWhole {
		r.Whole = !s.isNarrowed()
		r.Question, frequencies = r.KeepRarest(s.bounds.ranked, r.Frequencies(s.documents), true)
		r.Weights = relevance.Weights(frequencies, int64(len(s.documents)))
		return r.Order(s.documents), s.db.Statement.Context.Err()
	}
	if r.Question, frequencies, err = s.findCandidates(r.Question); err != nil {
		return nil, err
	}
	r.Weights = relevance.Weights(frequencies, s.total)
	if err := s.addNeighbors(r.Order(s.documents)); err != nil {
		return nil, err
	}
	return r.Order(s.documents), s.db.Statement.Context.Err()
}

// isNarrowed reports whether messages of the path are left out, so that entries in a row
// are not always neighbors.
func (s *rankedSearch) isNarrowed() bool {
	return s.q.Role != "" || s.q.AllBranches || len(s.must.Terms) > 0
}

// addEntries adds entries to the documents.
func (s *rankedSearch) addEntries(entries []searchEntry, beside bool) {
	for _, e := range entries {
		d := relevance.Document{ID: e.N, Session: e.SessionID, Seq: e.Seq, At: e.CreatedAt.UTC(), Length: e.Length, Terms: e.Terms}
		if s.known[d.Place()] {
			continue
		}
		s.known[d.Place()] = true
		d.Beside = beside
		s.documents = append(s.documents, d)
		s.messages[e.N] = e.MessageID
		s.last = max(s.last, e.MessageID)
	}
}

// maxBoosted is how many of the best results may change places by what the question mentions.
const maxBoosted = 200

// boostMentioned boosts the scores of messages whose author or day the question mentions, and
// orders the results again.
func (s *rankedSearch) boostMentioned(list []relevance.Result) error {
	var rows []struct{ ID, Author string }
	err := s.db.Raw("SELECT id, author FROM messages WHERE id IN ? AND author <> ''", idsOf(list, s.messageOf)).Scan(&rows).Error
	if err != nil {
		return err
	}
	authors := make(map[string]string, len(rows))
	for _, r := range rows {
		authors[r.ID] = r.Author
	}
	mentions := relevance.FindMentions(s.question, s.q.Text)
	for i := range list {
		list[i].Score *= mentions.Boost(authors[s.messageOf(list[i])], list[i].At)
	}
	slices.SortStableFunc(list, func(a, b relevance.Result) int { return cmp.Compare(b.Score, a.Score) })
	return nil
}

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
