package repositories

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/core/searchtext"
)

// Search finds messages by their words. Safe for concurrent use.
type Search struct {
	db     *gorm.DB
	bounds searchBounds
}

// NewSearch returns the search in db.
func NewSearch(db *gorm.DB) *Search { return &Search{db: db, bounds: defaultBounds()} }

// maxExamined bounds how many messages a page examines that turn out to be off the path, or
// not to contain a phrase of the query. The next page examines more.
const maxExamined = 1000

// Messages returns a page of the messages that the query finds, the best first, or with
// core.SortNewest those that have all of its words, newest first; those of one millisecond in
// the reverse order of storage. The order is stable when messages are added, and is the same
// on both databases. Deleted messages are not found. ErrInvalid for a text that cannot be
// searched for, ErrNotFound for a session outside of the scope.
func (r *Search) Messages(ctx context.Context, tenant core.Tenant, q core.SearchQuery) (none core.SearchPage, err error) {
	s := rankedSearch{messageSearch: messageSearch{scope: tenant, q: q}, bounds: r.bounds}
	list, read := "relevance", s.readRanked
	if q.Sort == core.SortNewest {
		list, read = "search", s.readNewest
		s.must, err = searchtext.Parse(q.Text)
	} else {
		err = s.parseQuestion()
	}
	if err != nil {
		return none, err
	}
	if q.SessionID != "" {
		if err := requireVisible(byID(ctx, r.db, "session", q.SessionID), tenant, q.SessionID); err != nil {
			return none, err
		}
	}
	limit, from, err := pageStart(q.Limit, q.Cursor, list)
	if err != nil {
		return none, err
	}
	indexing := false
	if q.SessionID == "" || r.hasBacklog(ctx, q) {
		indexing = r.indexScope(ctx, tenant, q.SessionID)
	}
	s.db, s.from = r.db.WithContext(ctx), from
	page, err := read(limit)
	if err == nil {
		err = s.addAround(page.Items)
	}
	if err != nil {
		return none, wrapError(err, "search of", tenant.Owner)
	}
	page.Indexing = indexing
	return page, nil
}

// Hits returns those of the messages that the query's filters allow, in no order and without a
// score. Words of the query are highlighted; none needs to be there. ErrInvalid for a text
// that cannot be searched for.
func (r *Search) Hits(ctx context.Context, tenant core.Tenant, q core.SearchQuery, ids []core.MessageID) ([]core.SearchHit, error) {
	question, err := searchtext.ParseQuestion(q.Text)
	if err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, nil
	}
	s := messageSearch{db: r.db.WithContext(ctx), scope: tenant, q: q}
	rows, err := s.allowedMessages(idsOf(ids, func(id core.MessageID) string { return string(id) }))
	if err != nil {
		return nil, wrapError(err, "search of", tenant.Owner)
	}
	hits := make([]core.SearchHit, 0, len(rows))
	for _, row := range rows {
		isWanted := (q.SessionID == "" || row.SessionID == q.SessionID) && (q.Role == "" || row.Role == q.Role) && !q.Except[row.Seq]
		if !isWanted {
			continue
		}
		hit, _ := s.newHit(*row, func(text string) ([]searchtext.Span, bool) {
			spans, _ := question.FindWords(text)
			return spans, true
		})
		hits = append(hits, hit)
	}
	return hits, nil
}

// AddNeighbors sets the neighbors of the hits that the query asks for.
func (r *Search) AddNeighbors(ctx context.Context, tenant core.Tenant, q core.SearchQuery, hits []core.SearchHit) error {
	s := messageSearch{db: r.db.WithContext(ctx), scope: tenant, q: q}
	return wrapError(s.addAround(hits), "search of", tenant.Owner)
}

// indexTime is how long a search takes at most to index what it reads, or waits until another
// transaction has done that.
const indexTime = time.Second

// hasBacklog reports whether messages of the session that may be results are not indexed: the exceptions of a
// search for a prompt are its newest ones.
func (r *Search) hasBacklog(ctx context.Context, q core.SearchQuery) bool {
	some, err := r.hasUnindexed(ctx, func(db *gorm.DB) *gorm.DB {
		return db.Where("id = ? AND last_seq - seq > ?", q.SessionID, len(q.Except))
	})
	return err == nil && some
}

// indexScope indexes what is not indexed yet of the scope, and reports whether something is
// left.
func (r *Search) indexScope(ctx context.Context, tenant core.Tenant, session core.SessionID) (left bool) {
	scope := func(db *gorm.DB) *gorm.DB {
		if session != "" {
			db = db.Where("id = ?", session)
		}
		if tenant.User != "" {
			db = db.Where("user_id = ?", tenant.User)
		}
		return db.Where("seq < last_seq AND sessions.owner = ?", tenant.Owner) // readers have an owner, too
	}
	ctx, cancel := context.WithTimeout(ctx, indexTime)
	defer cancel()
	for {
		_, done, err := r.indexSome(ctx, scope, "")
		if err != nil || done { // an error, too, of a database that only reads: the search goes on
			return err != nil
		}
	}
}

// foundMessage is a message that the index found.
type foundMessage struct {
	core.Message
	Title string
}

// messageSearch is one search.
type messageSearch struct {
	db     *gorm.DB
	scope  core.Tenant
	q      core.SearchQuery
	must   searchtext.Query // what each message must have
	from   position         // the end of the last page
	newest string           // only messages up to this one, by id; "" = all
	budget int              // how many bytes of terms the next query may read
	isCut  bool             // the last query found more than it was to read
}

// readNewest returns a page of the messages that have all of the query. It reads entries from the index until the page is full.
func (s *messageSearch) readNewest(limit int) (core.SearchPage, error) {
	p := core.SearchPage{Page: core.Page[core.SearchHit]{Items: []core.SearchHit{}}}
	s.budget = math.MaxInt
	for examined := 0; ; {
		want := limit - len(p.Items) + 1
		entries, err := s.newestEntries(want)
		if err != nil {
			return p, err
		}
		found, err := s.allowedMessages(idsOf(entries, func(e searchEntry) string { return e.MessageID }))
		if err != nil {
			return p, err
		}
		for _, e := range entries {
			if err := s.db.Statement.Context.Err(); err != nil {
				return p, err
			}
			if len(p.Items) == limit || examined > maxExamined+limit {
				p.NextCursor = s.from.encodeCursor()
				return p, nil
			}
			examined++
			s.from = position{List: "search", N: e.CreatedAt.UnixMicro(), M: e.N}
			f := found[e.MessageID]
			if f == nil {
				continue
			}
			if hit, ok := s.newHit(*f, s.must.Find); ok {
				p.Items = append(p.Items, hit)
			}
		}
		if len(entries) < want {
			return p, nil
		}
	}
}

// newHit returns the hit of a row with what find finds in its text.
func (s *messageSearch) newHit(f foundMessage, find func(string) ([]searchtext.Span, bool)) (core.SearchHit, bool) {
	text := indexedText(f.Message)
	spans, ok := find(text)
	if !ok {
		return core.SearchHit{}, false
	}
	hit := core.SearchHit{
		SessionID: f.SessionID, SessionTitle: f.Title, MessageID: f.ID,
		Seq: f.Seq, Role: f.Role, Author: f.Author, CreatedAt: f.CreatedAt,
	}
	hit.Excerpt, spans = searchtext.Excerpt(text, spans, cmp.Or(max(s.q.Excerpt, 0), core.DefaultExcerpt))
	hit.Pieces = searchtext.Pieces(hit.Excerpt, spans)
	return hit, true
}

func (s *messageSearch) allowedMessages(ids []string) (map[string]*foundMessage, error) {
	var rows []foundMessage
	allowed, args := s.allowedSQL()
	err := s.db.Raw("SELECT "+foundColumns+" FROM messages m JOIN sessions s ON s.id = m.session_id WHERE m.id IN ? AND "+allowed,
		append([]any{ids}, args...)...).Scan(&rows).Error
	found := make(map[string]*foundMessage, len(rows))
	for i := range rows {
		found[string(rows[i].ID)] = &rows[i]
	}
	return found, err
}

// ownerWords are the words that narrow a search to a scope.
func ownerWords(tenant core.Tenant) []string {
	words := []string{hashedWord(wordOwner, tenant.Owner)}
	if tenant.User != "" {
		words = append(words, hashedWord(wordUser, tenant.User))
	}
	return words
}

func (s *messageSearch) scopeWords() []string {
	words := append(ownerWords(s.scope), wordMessage)
	if s.q.UserID != "" {
		words = append(words, hashedWord(wordUser, s.q.UserID))
	}
	if s.q.SessionID != "" && !isPostgres(s.db) { // which has an index of the sessions' entries
		words = append(words, sessionWord(string(s.q.SessionID)))
	}
	if s.q.Role != "" {
		words = append(words, wordRole+string(s.q.Role))
	}
	return words
}

// foundColumns are the columns of a foundMessage. The query reads no more of a message than is indexed.
const foundColumns = `m.id, m.session_id, s.title, m.seq, m.role, substr(m.content, 1, 262144) AS content, m.tool_calls, m.tool_name, m.author, m.created_at`

// allowedSQL returns the conditions that the index does not contain, and those of the scope
// again, for messages m and sessions s.
func (s *messageSearch) allowedSQL() (string, []any) {
	sql, args := "m.deleted_at IS NULL AND m.seq <= s.last_seq AND m.owner = ? AND s.owner = ?", []any{s.scope.Owner, s.scope.Owner}
	if !s.q.AllBranches {
		sql += " AND m.on_path"
	}
	for _, user := range []string{s.scope.User, s.q.UserID} {
		if user != "" {
			sql, args = sql+" AND s.user_id = ?", append(args, user)
		}
	}
	if s.q.Agent != "" {
		sql, args = sql+" AND s.agent = ?", append(args, s.q.Agent)
	}
	if s.q.Author != "" {
		sql, args = sql+" AND (m.author = ? OR m.author_id = ?)", append(args, s.q.Author, s.q.Author)
	}
	if !s.q.After.IsZero() {
		sql, args = sql+" AND m.created_at >= ?", append(args, s.q.After.UTC())
	}
	if !s.q.Before.IsZero() {
		sql, args = sql+" AND m.created_at < ?", append(args, s.q.Before.UTC())
	}
	return sql, args
}

// aroundReach is how far away in seq a neighbor may be: messages of other branches are in
// between.
const aroundReach = 8

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
	rows, err := scan[[]core.Message](s.db.Raw(with+`
		SELECT DISTINCT m.id, m.session_id, m.seq, m.role, m.author, substr(m.content, 1, 2000) AS content, m.tool_name, m.created_at
		FROM `+windowMessagesSQL(s.db)+` JOIN sessions s ON s.id = m.session_id WHERE m.on_path AND m.deleted_at IS NULL
		AND m.seq <= s.last_seq AND m.owner = ? AND m.role <> 'system' AND m.content <> '' ORDER BY m.session_id, m.seq`, append(args, s.scope.Owner)...))
	if err != nil {
		return nil, err
	}
	out := map[core.SessionID][]core.Neighbor{}
	for _, r := range rows {
		if r.ToolName == core.ToolSearchHistory {
			continue
		}
		n := core.Neighbor{MessageID: r.ID, Seq: r.Seq, Role: r.Role, Author: r.Author, CreatedAt: r.CreatedAt}
		n.Excerpt, _ = searchtext.Excerpt(r.Content, nil, cmp.Or(max(s.q.Excerpt, 0), core.DefaultExcerpt))
		out[r.SessionID] = append(out[r.SessionID], n)
	}
	return out, nil
}
