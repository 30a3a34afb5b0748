package repositories

import (
	"context"
	"time"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/core/searchtext"
	"bobbin/app/db/models"
)

// Search finds messages by their words. Safe for concurrent use.
type Search struct {
	db *gorm.DB
}

// NewSearch returns the search in db.
func NewSearch(db *gorm.DB) *Search { return &Search{db: db} }

// maxLooked bounds how many messages a page looks at that turn out not to be on the
// path, or not to have a phrase that it asks for. More are for the next page.
const maxLooked = 1000

// Messages returns a page of the messages that the query finds, newest first;
// those of one millisecond in the order in which they were stored, the last one
// first. The order does not change when messages are added, and is the same on both
// databases. What was deleted is not found. ErrInvalid is a text that cannot be
// looked for, ErrNotFound a session outside of the scope.
func (r *Search) Messages(ctx context.Context, scope core.Scope, q core.SearchQuery) (core.SearchPage, error) {
	none := core.SearchPage{}
	query, err := searchtext.Parse(q.Text)
	if err != nil {
		return none, err
	}
	if q.SessionID != "" {
		if err := known("session", q.SessionID); err != nil {
			return none, err
		}
		if err := mustSee(r.db.WithContext(ctx), scope, q.SessionID); err != nil {
			return none, err
		}
	}
	limit, err := pageLimit(q.Limit)
	if err != nil {
		return none, err
	}
	from, more, err := parseCursor(q.Cursor, "search")
	if err != nil {
		return none, err
	}
	page := core.SearchPage{}
	// Before it is looked: what is indexed in between may be found or not.
	if page.Indexing, err = r.Indexing(ctx); err != nil {
		return none, err
	}
	err = withoutJIT(r.db.WithContext(ctx), func(db *gorm.DB) (err error) {
		s := searching{db: db, scope: scope, q: q, query: query, from: from, more: more}
		page.Page, err = s.page(limit)
		return err
	})
	if err != nil {
		return none, failure(err, "search of", scope.Owner)
	}
	return page, nil
}

// Indexing reports whether messages of an older version are still being indexed.
func (r *Search) Indexing(ctx context.Context) (bool, error) {
	var n int64
	err := r.db.WithContext(ctx).Model(&models.SearchFill{}).Count(&n).Error
	return n > 0, failure(err, "search", "")
}

// found is a message that the index found, with the place of its entry.
type found struct {
	N         int64
	EntryAt   time.Time
	Allowed   bool
	ID        string
	SessionID string
	Title     string
	Seq       int64
	Role      string
	Content   string
	ToolCalls models.JSON
	ToolName  string
	CreatedAt time.Time
}

// searching is one search.
type searching struct {
	db    *gorm.DB
	scope core.Scope
	q     core.SearchQuery
	query searchtext.Query
	from  position
	more  bool // from is where the last page ended
}

// page reads what the index found until the page is full.
func (s *searching) page(limit int) (core.Page[core.SearchHit], error) {
	p := core.Page[core.SearchHit]{Items: []core.SearchHit{}}
	for looked := 0; ; {
		want := limit - len(p.Items) + 1
		rows, err := s.candidates(want)
		if err != nil {
			return p, err
		}
		for i, row := range rows {
			if len(p.Items) == limit || looked > maxLooked+limit {
				p.NextCursor = s.from.cursor()
				return p, nil
			}
			looked++
			s.from, s.more = rows[i].position(s.db), true
			hit, ok, err := s.hit(row)
			if err != nil {
				return p, err
			}
			if ok {
				p.Items = append(p.Items, hit)
			}
		}
		if len(rows) < want {
			return p, nil
		}
	}
}

// position returns where the row's entry is in the order.
func (f found) position(db *gorm.DB) position {
	if isPostgres(db) {
		return position{List: "search", N: f.EntryAt.UnixMicro(), M: f.N}
	}
	return position{List: "search", N: f.N}
}

// hit returns what is told of a row, and false if it may not be told, or does not
// have what is looked for after all.
func (s *searching) hit(f found) (core.SearchHit, bool, error) {
	if !f.Allowed {
		return core.SearchHit{}, false, nil
	}
	m, err := models.Message{ID: f.ID, Content: f.Content, ToolCalls: f.ToolCalls, ToolName: f.ToolName}.Core()
	if err != nil {
		return core.SearchHit{}, false, err
	}
	text := searchable(m)
	spans, ok := s.query.Find(text)
	if !ok {
		return core.SearchHit{}, false, nil
	}
	size := s.q.Excerpt
	if size <= 0 {
		size = core.DefaultExcerpt
	}
	hit := core.SearchHit{
		SessionID: core.SessionID(f.SessionID), SessionTitle: f.Title, MessageID: core.MessageID(f.ID),
		Seq: f.Seq, Role: core.Role(f.Role), Highlights: []core.Highlight{}, CreatedAt: f.CreatedAt.UTC(),
	}
	hit.Excerpt, spans = searchtext.Excerpt(text, spans, size)
	for _, p := range spans {
		hit.Highlights = append(hit.Highlights, core.Highlight{Start: p.Start, End: p.End})
	}
	return hit, true, nil
}

// ownerWords narrow a search to a scope.
func ownerWords(scope core.Scope) []string {
	words := []string{hashed(wordOwner, scope.Owner)}
	if scope.User != "" {
		words = append(words, hashed(wordUser, scope.User))
	}
	return words
}

// scopeWords are the words that narrow the search.
func (s *searching) scopeWords() []string {
	words := append(ownerWords(s.scope), wordMessage)
	if s.q.UserID != "" {
		words = append(words, hashed(wordUser, s.q.UserID))
	}
	if s.q.SessionID != "" {
		words = append(words, sessionWord(string(s.q.SessionID)))
	}
	if s.q.Role != "" {
		words = append(words, wordRole+string(s.q.Role))
	}
	return words
}

// candidates returns the next rows that the index finds, at most n.
func (s *searching) candidates(n int) ([]found, error) {
	if isPostgres(s.db) {
		return s.candidatesPostgres(n)
	}
	return s.candidatesSQLite(n)
}

// foundColumns are the columns of found, but for the first three. No more of a
// message is read than is searched.
const foundColumns = `m.id, m.session_id, s.title, m.seq, m.role, substr(m.content, 1, 262144) AS content, m.tool_calls, m.tool_name, m.created_at`

// allowed are the conditions that the index does not know, and those of the scope
// once more, of messages m and sessions s.
func (s *searching) allowed() (string, []any) {
	sql, args := "m.deleted_at IS NULL AND m.owner = ? AND s.owner = ?", []any{s.scope.Owner, s.scope.Owner}
	if !s.q.AllBranches {
		sql += " AND m.on_path"
	}
	for _, user := range []string{s.scope.User, s.q.UserID} {
		if user != "" {
			sql, args = sql+" AND s.user_id = ?", append(args, user)
		}
	}
	if !s.q.After.IsZero() {
		sql, args = sql+" AND m.created_at >= ?", append(args, s.q.After.UTC())
	}
	if !s.q.Before.IsZero() {
		sql, args = sql+" AND m.created_at < ?", append(args, s.q.Before.UTC())
	}
	return sql, args
}
