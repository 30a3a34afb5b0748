package repositories_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/core/searchtext"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/golden"
	"bobbin/tests/must"
)

// most is how many hits of a query are compared.
const most = 400

// Both databases find the same messages, exactly those that searchtext matches, newest
// first.
func TestSearchFindsTheSame(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		texts := s.fill(t, 800)
		for _, text := range corpusQueries() {
			got := s.found(t, text)
			diff := gocmp.Diff(expected(t, texts, text), keysOf(got))
			compare.True(t, diff == "", "%s (-searchtext +database):\n%s", text, diff)
			if diff := gocmp.Diff(expectedSessions(t, texts, text), s.sessionPages(t, text)); diff != "" {
				t.Errorf("sessions with %s (-searchtext +database):\n%s", text, diff)
			}
		}

		var b strings.Builder
		for _, text := range corpusQueries() {
			hits := s.found(t, text)
			count := fmt.Sprint(len(hits))
			if len(hits) == most {
				count = "many"
			}
			fmt.Fprintf(&b, "%s\n  %s: %s\n", text, count, strings.Join(keysOf(hits[:min(len(hits), 12)]), " "))
			if len(hits) > 0 {
				fmt.Fprintf(&b, "  %s\n", marked(hits[0]))
			}
		}
		golden.Check(t, "testdata/"+"search_800"+".golden", b.String())
	})
}

// search searches for exactly the words, unless the query has a sort.
func (s *store) search(t testing.TB, tenant core.Tenant, q core.SearchQuery) core.SearchPage {
	t.Helper()
	q.Sort = cmp.Or(q.Sort, core.SortNewest)
	for {
		page, err := repositories.NewSearch(s.Gorm).Messages(t.Context(), tenant, q)
		must.True(t, err == nil, "search %q: %v", q.Text, err)
		if !page.Indexing { // else a loaded machine took more than its time to index
			return page
		}
	}
}

// found returns the newest hits of ann's, page by page.
func (s *store) found(t testing.TB, text string) []core.SearchHit {
	t.Helper()
	var hits []core.SearchHit
	q := core.SearchQuery{Text: text, PageQuery: core.PageQuery{Limit: 37}}
	for len(hits) < most {
		page := s.search(t, ann(), q)
		hits = append(hits, page.Items...)
		if page.NextCursor == nil {
			break
		}
		q.Cursor = *page.NextCursor
	}
	return hits[:min(len(hits), most)]
}

func keysOf(hits []core.SearchHit) []string {
	keys := []string{}
	for _, h := range hits {
		keys = append(keys, h.SessionTitle+"#"+fmt.Sprint(h.Seq))
	}
	return keys
}

// expected returns the keys that searchtext finds, newest first.
func expected(t *testing.T, texts map[string]string, query string) []string {
	t.Helper()
	q := must.Get(searchtext.Parse(query))(t)
	keys := []string{}
	for i := len(texts) - 1; i >= 0 && len(keys) < most; i-- {
		key := corpusKey(i/corpusSession, i%corpusSession+1)
		if _, ok := q.Find(texts[key]); ok {
			keys = append(keys, key)
		}
	}
	return keys
}

// expectedSessions returns the titles of the sessions in which searchtext finds
// something, the newest first.
func expectedSessions(t *testing.T, texts map[string]string, query string) []string {
	t.Helper()
	q := must.Get(searchtext.Parse(query))(t)
	titles := []string{}
	for session := len(texts)/corpusSession - 1; session >= 0; session-- {
		_, found := q.Find(fmt.Sprint(session))
		for seq := 1; seq <= corpusSession && !found; seq++ {
			_, found = q.Find(texts[corpusKey(session, seq)])
		}
		if found {
			titles = append(titles, fmt.Sprint(session))
		}
	}
	return titles
}

// sessionPages returns the titles of ann's sessions with the text, page by page.
func (s *store) sessionPages(t *testing.T, text string) []string {
	t.Helper()
	titles := []string{}
	for _, it := range all(t, func(cursor string) (core.Page[core.Session], error) {
		return s.sessions.List(t.Context(), ann(), core.SessionQuery{Text: text, PageQuery: core.PageQuery{Limit: 3, Cursor: cursor}})
	}) {
		titles = append(titles, it.Title)
	}
	return titles
}

// marked returns the excerpt with what was found in brackets.
func marked(h core.SearchHit) (out string) {
	for _, p := range h.Pieces {
		if p.Match {
			p.Text = "[" + p.Text + "]"
		}
		out += p.Text
	}
	return out
}

// A session is indexed while a turn holds its row, so no turn waits for the index.
func TestIndexWithoutTheSession(t *testing.T) {
	t.Parallel()
	s := open(dbtest.Postgres(t))
	id := s.session(t).ID
	s.turns(t, id, 1)
	release := s.hog(t, id)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	index := repositories.NewSearch(s.Gorm)
	if n, _, err := index.IndexNext(ctx); err != nil || n != 2 {
		t.Errorf("beside a turn: indexed %d messages, %v, want 2", n, err)
	}
	compare.Equal(t, "messages left beside a turn", 0, must.Get(index.Unindexed(ctx))(t))
	release()
	s.index(t)
	compare.Equal(t, "sessions that are looked at again and again", 0, s.count(t, "SELECT COUNT(*) FROM sessions WHERE indexed_seq < last_seq"))
}

// What changes indexed messages waits for the indexer, which has read them as they were before.
func TestChangesWaitForTheIndex(t *testing.T) {
	t.Parallel()
	s := open(dbtest.Postgres(t))
	branches := repositories.NewBranches(s.Gorm)
	for name, change := range map[string]func(context.Context, core.SessionID, core.MessageID) error{
		"delete": func(ctx context.Context, id core.SessionID, m core.MessageID) error {
			_, err := branches.Delete(ctx, ann(), id, m)
			return err
		},
		"revise": func(ctx context.Context, id core.SessionID, m core.MessageID) error {
			_, _, err := branches.Revise(ctx, ann(), core.ReviseMessage{SessionID: id, MessageID: m, Content: "new"})
			return err
		},
		"rename": func(ctx context.Context, id core.SessionID, _ core.MessageID) error {
			title := "bees"
			_, _, err := s.sessions.Update(ctx, ann(), id, core.SessionPatch{Title: &title})
			return err
		},
		"purge": func(ctx context.Context, id core.SessionID, _ core.MessageID) error {
			_, err := repositories.NewPurges(s.Gorm).Session(ctx, id, true)
			return err
		},
	} {
		id := s.session(t).ID
		s.turns(t, id, 1)
		asked := s.log(t, id)[0].ID
		indexer := s.Gorm.WithContext(t.Context()).Begin()
		must.Do(t, indexer.Exec("SELECT seq FROM session_readers WHERE session_id = ? FOR UPDATE", id).Error)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		compare.True(t, change(ctx, id, asked) != nil, "%s: did not wait for the indexer", name)
		cancel()
		s.get(t, id) // not hidden by a purge that waits
		indexer.Rollback()
		compare.Error(t, name+": after the indexer", nil, change(t.Context(), id, asked))
	}
}

// A search that needs the index waits for who holds its session, and finds all then.
func TestSearchesWaitForTheIndex(t *testing.T) {
	t.Parallel()
	s := open(dbtest.Postgres(t))
	id := s.session(t).ID
	s.turns(t, id, 1)
	other := s.Gorm.WithContext(t.Context()).Begin()
	must.Do(t, other.Exec("SELECT seq FROM session_readers WHERE session_id = ? FOR UPDATE", id).Error)
	begin := time.Now()
	time.AfterFunc(300*time.Millisecond, func() { other.Rollback() })
	q := core.SearchQuery{Text: s.log(t, id)[0].Content, SessionID: id, Sort: core.SortNewest}
	page, err := repositories.NewSearch(s.Gorm).Messages(t.Context(), ann(), q)
	if err != nil || len(page.Items) == 0 || page.Indexing || time.Since(begin) < 300*time.Millisecond {
		t.Errorf("got %d hits after %v, indexing %t, %v, want the message after the other transaction", len(page.Items), time.Since(begin), page.Indexing, err)
	}
}

// endedContext is a context that ends without telling the database.
type endedContext struct {
	context.Context

	ended atomic.Bool
}

func (*endedContext) Done() <-chan struct{} { return nil }

func (c *endedContext) Err() error {
	if c.ended.Load() {
		return context.Canceled
	}
	return nil
}

// A search that has taken too long ends between two messages, too, not only in the database.
func TestSearchEndsInTime(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		must.Do(t, repositories.Fillup(t.Context(), s.Gorm, s.session(t).ID, []core.Message{{Role: core.RoleUser, Content: "the pump"}}))
		for _, until := range []string{"substr(m.content", "FROM search_", "FROM messages"} {
			ctx := &endedContext{Context: t.Context()}
			after := func(db *gorm.DB) {
				if strings.Contains(db.Statement.SQL.String(), until) {
					ctx.ended.Store(true)
				}
			}
			must.Do(t, errors.Join(s.Gorm.Callback().Row().After("gorm:row").Replace("end", after), s.Gorm.Callback().Query().After("gorm:query").Replace("end", after)))
			_, err := repositories.NewSearch(s.Gorm).Messages(ctx, ann(), core.SearchQuery{Text: "pump*"})
			compare.Error(t, fmt.Sprintf("after %s: want that it ends", until), context.Canceled, err)
		}
	})
}

// Of a question with very many words, the rarest count.
func TestSearchForManyWords(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		var words []string
		for i := range 60 {
			words = append(words, fmt.Sprintf("w%d", i))
		}
		var messages []core.Message
		for i := range 80 {
			text := strings.Join(words, " ")
			if i == 30 {
				text = "zebra"
			}
			messages = append(messages, core.Message{Role: core.RoleUser, Content: text})
		}
		must.Do(t, repositories.Fillup(t.Context(), s.Gorm, s.session(t).ID, messages))
		for name, search := range map[string]*repositories.Search{"all": repositories.NewSearch(s.Gorm), "few": repositories.NewSmallSearch(s.Gorm)} {
			page := must.Get(search.Messages(t.Context(), ann(), core.SearchQuery{Text: strings.Join(words, " ") + " zebra nowhere w1.w2*"}))(t)
			compare.True(t, len(page.Items) != 0 && page.Items[0].Seq >= 29 && page.Items[0].Seq <= 33, "%s: got %+v, want what is at the zebra first", name, page.Items)
		}
	})
}

// A search reads a bounded number of bytes, the same on both databases.
func TestSearchReadsFewBytes(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		var messages []core.Message
		for i := range 60 {
			var b strings.Builder
			for k := range 200 {
				fmt.Fprintf(&b, "pump x%dy%d ", i, k)
			}
			messages = append(messages, core.Message{Role: core.RoleUser, Content: b.String()})
		}
		must.Do(t, repositories.Fillup(t.Context(), s.Gorm, s.session(t).ID, messages))
		s.index(t)
		// An entry has 201 terms of 5 bytes; the last one is read whole. Then come neighbors.
		for bytes, want := range map[int]int{20 * 1005: 21, 1 << 20: 60} {
			page, err := repositories.NewNarrowSearch(s.Gorm, bytes).Messages(t.Context(), ann(), core.SearchQuery{Text: "pump"})
			if err != nil || *page.Total < want || *page.Total > 2*want || len(page.Items) == 0 {
				t.Errorf("%d bytes: got %d messages (%v), want %d", bytes, *page.Total, err, want)
			}
		}
	})
}

// A switch to another branch writes only the entries of messages that come on or off the path.
func TestPathSwitchWritesFewEntries(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id := s.session(t).ID
		s.turns(t, id, 2)
		last := s.log(t, id)[3].ID
		written := int64(0)
		must.Do(t, s.Gorm.Callback().Raw().After("gorm:raw").Register("count", func(db *gorm.DB) {
			if strings.Contains(db.Statement.SQL.String(), "UPDATE search_entries SET on_path") {
				written += db.RowsAffected
			}
		}))
		for range 3 {
			s.index(t)
			s.again(t, id, last)
		}
		compare.Equal(t, "entries written for three new answers", 3, written)
	})
}

// Where a third of all sessions is active at once and each is long, the index reads their new messages, and a search
// those around what it found; neither reads the rest of the sessions.
func TestWindowsOfLongSessions(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := &bigHistory{store: open(d), n: 100} // messages of each session
		for _, stmt := range []string{
			`ROWS[120] INSERT INTO sessions (id, owner, agent, source, message_count, last_seq, indexed_seq, created_at, updated_at)
			SELECT S[k], 'ann', 'assistant', 'api', N, N, N, T[60], T[60] FROM k`,
			"INSERT INTO session_readers SELECT id, 'search', owner, last_seq, false FROM sessions",
			"INSERT INTO session_readers SELECT id, 'vectors', owner, last_seq, false FROM sessions",
			`ROWS[120 * N] INSERT INTO messages (id, session_id, owner, seq, role, content, status, source, token_count, created_at)
			SELECT M[k], S[(k - 1) % 120 + 1], 'ann', (k - 1) / 120 + 1, 'user', 'lorem ipsum dolor sit amet ' || k, 'complete', 'api', 9, T[60] FROM k`,
			`ROWS[40] INSERT INTO messages (id, session_id, owner, seq, role, content, status, source, token_count, created_at)
			SELECT M[120 * N + k], S[k], 'ann', N + 1, 'user', 'pump ' || k, 'complete', 'api', 9, T[1] FROM k`,
			"ROWS[40] UPDATE sessions SET last_seq = N + 1, updated_at = T[1] WHERE id IN (SELECT S[k] FROM k)",
		} {
			h.exec(t, h.translated(stmt))
		}
		if h.Dialect() == "postgres" {
			h.exec(t, `INSERT INTO search_entries (owner, session_id, message_id, created_at, words, seq, length, terms)
				SELECT owner, session_id, id, created_at, to_tsvector('simple', 'lorem ipsum'), seq, 5, ''::bytea FROM messages WHERE seq <= 100`)
			h.exec(t, "ANALYZE")
		}
		index, q := repositories.NewSearch(h.Gorm), core.SearchQuery{Text: "pump", Around: 2}
		windows := 0
		for _, asked := range h.recorded(t, func() {
			n, done := must.Get2(index.IndexNext(t.Context()))(t)
			compare.Equal(t, "indexed", []any{40, true}, []any{n, done})
			page := must.Get(index.Messages(t.Context(), ann(), q))(t)
			compare.Equal(t, "found", 40, len(page.Items))
			must.Do(t, index.AddNeighbors(t.Context(), ann(), q, page.Items))
		}) {
			if strings.HasPrefix(asked.text, "WITH w") {
				windows++
				h.wantBounded(t, "a query of windows", asked)
			}
		}
		compare.True(t, windows >= 4, "got %d queries of windows, want at least 4", windows) // on PostgreSQL five: its index has more than is ranked whole
	})
}
