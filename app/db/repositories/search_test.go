package repositories_test

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/searchtext"
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
			if diff := gocmp.Diff(expected(t, texts, text), keysOf(got)); diff != "" {
				t.Errorf("%s (-searchtext +database):\n%s", text, diff)
			}
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
		if err != nil {
			t.Fatalf("search %q: %v", q.Text, err)
		}
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

// marked returns the excerpt with its highlights in brackets.
func marked(h core.SearchHit) string {
	out, last := "", 0
	for _, m := range h.Highlights {
		out += h.Excerpt[last:m.Start] + "[" + h.Excerpt[m.Start:m.End] + "]"
		last = m.End
	}
	return out + h.Excerpt[last:]
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
		if err := change(ctx, id, asked); err == nil {
			t.Errorf("%s: did not wait for the indexer", name)
		}
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
