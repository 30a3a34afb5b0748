package repositories_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/searchtext"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/seed"
)

// contents returns the excerpts of a page.
func (s *store) contents(t testing.TB, tenant core.Tenant, q core.SearchQuery) []string {
	t.Helper()
	out := []string{}
	for _, h := range s.search(t, tenant, q).Items {
		out = append(out, h.Excerpt)
	}
	return out
}

// titlesWith returns the titles of the sessions that the text finds.
func (s *store) titlesWith(t testing.TB, tenant core.Tenant, text string) []string {
	t.Helper()
	page, err := s.sessions.List(t.Context(), tenant, core.SessionQuery{Text: text})
	must.True(t, err == nil, "sessions with %q: %v", text, err)
	out := []string{}
	for _, it := range page.Items {
		out = append(out, it.Title)
	}
	return out
}

// Search does not find messages that are deleted, of others, or off the path; it finds
// copies in forks.
func TestSearchFindsOnlyWhatItMay(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		session, err := s.sessions.Create(t.Context(), core.Session{Owner: "ann", UserID: "carol", Title: "old"})
		must.Do(t, err)
		s.finish(t, s.accept(t, ask(session.ID, "red pump")).Run, "red answer")
		s.finish(t, s.accept(t, ask(session.ID, "red valve")).Run, "blue answer")
		s.edit(t, session.ID, s.log(t, session.ID)[2].ID, "green valve")
		want := func(what string, tenant core.Tenant, q core.SearchQuery, want ...string) {
			t.Helper()
			compare.Equal(t, what, append([]string{}, want...), s.contents(t, tenant, q))
		}
		want("the path", ann(), core.SearchQuery{Text: "red"}, "red answer", "red pump")
		want("all branches", ann(), core.SearchQuery{Text: "red", AllBranches: true}, "red valve", "red answer", "red pump")
		want("a role", ann(), core.SearchQuery{Text: "red", Role: core.RoleAssistant}, "red answer")
		want("her user", carol(), core.SearchQuery{Text: "pump"}, "red pump")
		want("another user", core.Tenant{Owner: "ann", User: "dave"}, core.SearchQuery{Text: "red"})
		want("no user of hers", carol(), core.SearchQuery{Text: "red", UserID: "dave"})
		want("another owner", bob(), core.SearchQuery{Text: "red"})
		_, err = repositories.NewSearch(s.Gorm).Messages(t.Context(), bob(), core.SearchQuery{Text: "red", SessionID: session.ID})
		compare.Error(t, "another owner's session", core.ErrNotFound, err)

		branches := repositories.NewBranches(s.Gorm)
		fork := must.Get(branches.Fork(t.Context(), ann(), core.ForkSession{SessionID: session.ID, Title: "forked"}))(t)
		want("the fork", ann(), core.SearchQuery{Text: "pump", SessionID: fork.ID}, "red pump")
		must.Get(branches.Delete(t.Context(), ann(), session.ID, s.log(t, session.ID)[0].ID))(t)
		want("deleted", ann(), core.SearchQuery{Text: "pump", SessionID: session.ID, AllBranches: true})
		want("its copy", ann(), core.SearchQuery{Text: "pump"}, "red pump")

		compare.Equal(t, "sessions with pump: want the fork", []string{"forked"}, s.titlesWith(t, ann(), "pump"))
		title := "New name"
		must.Get2(s.sessions.Update(t.Context(), ann(), session.ID, core.SessionPatch{Title: &title}))(t)
		for text, want := range map[string][]string{"name": {"New name"}, "old": {}, "forked": {"forked"}, "blue": {}, "valve": {"New name", "forked"}} {
			compare.Equal(t, fmt.Sprintf("sessions with %q", text), want, s.titlesWith(t, ann(), text))
		}
		got := s.titlesWith(t, bob(), "name")
		compare.True(t, len(got) == 0, "another owner: got %q", got)
	})
}

// A search does not find the searches of agents and their results: it would find itself.
func TestSearchLeavesItselfOut(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		run := s.accept(t, ask(s.session(t).ID, "where is the pump")).Run
		s.write(t, core.RunWrite{RunID: run.ID, SessionID: run.SessionID, Attempt: 1, Messages: []core.Message{
			{Role: core.RoleAssistant, ToolCalls: []core.ToolCall{
				{ID: "1", Name: core.ToolSearchHistory, Arguments: `{"query":"pump"}`}, {ID: "2", Name: "shell", Arguments: `{"command":"grep valve"}`}}},
			{Role: core.RoleTool, ToolCallID: "1", ToolName: core.ToolSearchHistory, Content: "the pump is here"},
			{Role: core.RoleTool, ToolCallID: "2", ToolName: "shell", Content: "no such file"},
		}})
		compare.Equal(t, "found: want the question alone", []string{"where is the pump"}, s.contents(t, ann(), core.SearchQuery{Text: "pump"}))
		compare.Equal(t, "found: want the call of the other tool", []string{`shell {"command":"grep valve"}`}, s.contents(t, ann(), core.SearchQuery{Text: "valve"}))
	})
}

// Pages neither repeat nor omit anything, also of messages of the same time and
// while others are added; the bounds of time hold.
func TestSearchPages(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id := s.session(t).ID
		at := func(i int) time.Time { return time.Date(2025, 1, 1, 0, 0, i/50, 0, time.UTC) }
		var messages []core.Message
		for i := range 300 {
			messages = append(messages, core.Message{Role: core.RoleUser, Content: fmt.Sprintf("pump %d", i), CreatedAt: at(i)})
		}
		must.Do(t, repositories.Fillup(t.Context(), s.Gorm, id, messages))
		var got []string
		q := core.SearchQuery{Text: "pump", PageQuery: core.PageQuery{Limit: 7}}
		for _, h := range all(t, func(cursor string) (core.Page[core.SearchHit], error) {
			if q.Cursor = cursor; cursor != "" {
				newer := core.Message{Role: core.RoleUser, Content: "pump later", CreatedAt: at(10_000)}
				must.Do(t, repositories.Fillup(t.Context(), s.Gorm, id, []core.Message{newer}))
			}
			return s.search(t, ann(), q).Page, nil
		}) {
			got = append(got, h.Excerpt)
		}
		want := make([]string, 300)
		for i := range want {
			want[i] = fmt.Sprintf("pump %d", 299-i)
		}
		compare.Equal(t, "pages", want, got)
		between := s.search(t, ann(), core.SearchQuery{Text: "pump", After: at(100), Before: at(150), PageQuery: core.PageQuery{Limit: 200}})
		compare.Equal(t, "between two times", []any{50, "pump 149", "pump 100"}, []any{len(between.Items), between.Items[0].Excerpt, between.Items[49].Excerpt})
		for _, q := range []core.SearchQuery{
			{Text: "pump", PageQuery: core.PageQuery{Cursor: "x"}}, {Text: "pump", PageQuery: core.PageQuery{Limit: 201}}, {Text: "..."},
		} {
			compare.Error(t, fmt.Sprintf("%+v", q), core.ErrInvalid, compare.ErrorOf(repositories.NewSearch(s.Gorm).Messages(t.Context(), ann(), q)))
		}
	})
}

// A page begins after the last result of the page before, although an import that ended in between
// put better results in front; of sessions likewise.
func TestSearchPagesDuringAnImport(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		imported := core.AppendMessages{SessionID: s.session(t).ID}
		for i := range 5 {
			imported.Messages = append(imported.Messages, core.Message{Role: core.RoleUser, Content: fmt.Sprintf("pump pump pump %d", i)})
		}
		finish := must.Get(repositories.BeginImport(t.Context(), s.messages, ann(), imported))(t)
		for i := range 12 {
			message := core.Message{Role: core.RoleUser, Content: fmt.Sprintf("the pump of hall %d is dry", i)}
			must.Do(t, repositories.Fillup(t.Context(), s.Gorm, s.session(t).ID, []core.Message{message}))
		}
		s.index(t)
		messages, sessions := map[core.MessageID]int{}, map[core.SessionID]int{}
		q, list := core.SearchQuery{Text: "pump", Sort: core.SortRelevance, PageQuery: core.PageQuery{Limit: 6}}, core.SessionQuery{Text: "pump", Order: core.OrderByRelevance, PageQuery: core.PageQuery{Limit: 6}}
		for range 2 {
			page := s.search(t, ann(), q)
			found := must.Get(s.sessions.List(t.Context(), ann(), list))(t)
			for _, h := range page.Items {
				messages[h.MessageID]++
			}
			for _, item := range found.Items {
				sessions[item.ID]++
			}
			if finish != nil {
				q.Cursor, list.Cursor = *page.NextCursor, *found.NextCursor
				must.Do(t, finish(t.Context()))
				finish = nil
				s.index(t)
			}
		}
		compare.True(t, len(messages) == 12 && len(sessions) == 12, "got %d messages and %d sessions on two pages, want the 12 of the first page's time: %v, %v", len(messages), len(sessions), messages, sessions)
	})
}

// No text is a syntax error of a database: each is refused as invalid, or finds what searchtext
// says, whatever is in the messages, also where a tsvector cannot hold all; and nothing of another
// owner. BOBBIN_TEST_LONG asks 20,000.
func TestSearchWhateverIsWritten(t *testing.T) {
	t.Parallel()
	asked := 200
	if os.Getenv("BOBBIN_TEST_LONG") != "" {
		asked = 20_000
	}
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		r := seed.Rand(t, 3)
		pieces := []string{
			" ", " ", "a", "b", "ab", "a b", "getUserId", "_", "-", `"`, "'", `\`, ":", "*", "(", ")", "{", "}", "^", "+", "&", "|", "!", "<->", "<2>", "%", "?", ";--",
			" AND ", " OR ", " NOT ", " NEAR(", "words : ", "scope:", "_oann", "$1", "@s", "水", "泵", "水泵", "é", "e\u0301", "ß", "İ", "ﬁ", "½", "ﷺ", "🎉", "\u200d", "\u200c", "a\u200cb", "ー", "ﾊﾞ", "กำ", "\ufeff", "\u00a0",
			"ERR_CONN", "a.b.c", "don't", "'; DROP", "a*", "%_*:^()", `-"the`, "1 2 3", "_w", "\x00", "\xff",
		}
		write := func(n int) string {
			var b strings.Builder
			for range 1 + r.IntN(n) {
				b.WriteString(pieces[r.IntN(len(pieces))])
			}
			return b.String()
		}
		texts := []string{
			strings.Repeat("a b ", 300) + "a a b ab", // more places of a word than a tsvector has
			strings.Repeat("x ", 17_000) + "a b",     // behind the last place
			strings.Repeat("水泵的", 6000), "ab" + strings.Repeat("é", 3000), strings.Repeat("ab", 50_000), strings.Repeat("ab the ", 20_000),
		}
		for range 150 {
			texts = append(texts, strings.ToValidUTF8(strings.ReplaceAll(write(12), "\x00", ""), ""))
		}
		for _, owner := range []string{"ann", "bob"} {
			var messages []core.Message
			for i, text := range texts {
				messages = append(messages, core.Message{Role: core.RoleUser, Content: text + " z" + owner, CreatedAt: time.Unix(int64(i), 0)})
			}
			session := must.Get(s.sessions.Create(t.Context(), core.Session{Owner: owner, Title: owner}))(t)
			must.Do(t, repositories.Fillup(t.Context(), s.Gorm, session.ID, messages))
		}
		searches := []*repositories.Search{repositories.NewSearch(s.Gorm), repositories.NewSmallSearch(s.Gorm)}
		for i := range asked {
			query := write(8)
			if i%50 == 7 {
				query = strings.Repeat(query, 60)
			}
			q, invalid := searchtext.Parse(query)
			owner, other := ann(), bob()
			if i/2%2 == 1 {
				owner, other = other, owner
			}
			for sort, search := range map[core.SearchSort]*repositories.Search{core.SortRelevance: searches[i%2], core.SortNewest: searches[0]} {
				if sort == core.SortNewest && i < asked/2 {
					continue // indexes
				}
				page, err := search.Messages(t.Context(), owner, core.SearchQuery{Text: query, Sort: sort, Around: i % 3, PageQuery: core.PageQuery{Limit: 200}})
				compare.True(t, err == nil || errors.Is(err, core.ErrInvalid), "%s %q: got %v", sort, query, err)
				exact := sort == core.SortNewest
				compare.True(t, !exact || (err == nil) == (invalid == nil), "%q: got %v, want the error %v", query, err, invalid)
				var got, want []int64
				for _, h := range page.Items {
					if got = append(got, h.Seq); h.SessionTitle != owner.Owner || strings.Contains(fmt.Sprint(h), "z"+other.Owner) {
						t.Errorf("%s %q of %s: got %+v", sort, query, owner.Owner, h)
					}
				}
				for i := len(texts) - 1; i >= 0 && exact && err == nil; i-- {
					if _, ok := q.Find(texts[i] + " z" + owner.Owner); ok {
						want = append(want, int64(i)+1)
					}
				}
				compare.True(t, !exact || slices.Equal(got, want), "%q: got %v, want %v", query, got, want)
			}
			if invalid == nil {
				s.titlesWith(t, owner, query)
			}
		}
	})
}

// index indexes all messages.
func (s *store) index(t testing.TB) {
	t.Helper()
	for n := 0; ; n++ {
		_, done, err := repositories.NewSearch(s.Gorm).IndexNext(t.Context())
		must.True(t, err == nil && n <= 100_000, "index %d: %v", n, err)
		if done {
			return
		}
	}
}

// A message is found at once, and once, whatever is indexed meanwhile: all of it, in all
// orders; what is edited, deleted or off the path is found as it is then.
func TestSearchBeforeTheIndex(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id := s.session(t).ID
		for i := range 30 {
			s.finish(t, s.accept(t, ask(id, fmt.Sprintf("pump%d of the hall", i))).Run, fmt.Sprintf("answer%d", i))
			if i%7 == 3 {
				s.index(t)
			}
			for _, back := range []int{0, i / 2} {
				for _, sort := range []core.SearchSort{core.SortRelevance, core.SortNewest} {
					q := core.SearchQuery{Text: fmt.Sprintf("pump%d", i-back), Sort: sort}
					if sort == core.SortNewest && i%5 > 0 {
						continue // indexes
					}
					compare.Equal(t, fmt.Sprintf("%s %s after %d", sort, q.Text, i), []string{fmt.Sprintf("pump%d of the hall", i-back)}, s.contents(t, ann(), q))
				}
			}
		}
		log := s.log(t, id)
		s.edit(t, id, log[4].ID, "valve")
		compare.Equal(t, "off the path: results", 0, len(s.ranked(t, core.SearchQuery{Text: "pump2"})))
		s.index(t)
		got := s.ranked(t, core.SearchQuery{Text: "pump3 pump2 pump1"})
		compare.True(t, len(got) == 1 && got[0].Excerpt == "pump1 of the hall", "off the path: got %+v", got)
		compare.Equal(t, "entries: want one for each message", s.count(t, "SELECT COUNT(*) FROM messages"), s.count(t, "SELECT COUNT(*) FROM search_entries WHERE message_id IS NOT NULL"))
	})
}

// Indexing that is broken off anywhere, by several processes at once, leaves every message in
// the index exactly once.
func TestIndexingIsBrokenOff(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		const sessions, each = 12, 60
		for range sessions {
			var messages []core.Message
			for i := range each {
				messages = append(messages, core.Message{Role: core.RoleUser, Content: fmt.Sprintf("pump %d", i)})
			}
			must.Do(t, repositories.Fillup(t.Context(), s.Gorm, s.session(t).ID, messages))
		}
		var wg sync.WaitGroup
		for worker := range 3 {
			wg.Go(func() {
				r := seed.Rand(t, uint64(worker))
				for range 20 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(20_000))*time.Microsecond)
					_, _, _ = repositories.NewSearch(s.Gorm).IndexNext(ctx)
					cancel()
				}
			})
		}
		wg.Wait()
		indexAll := func() { // PostgreSQL may not have heard yet that a transaction was broken off: its sessions are left out
			for s.count(t, "SELECT COUNT(*) FROM sessions WHERE indexed_seq < last_seq") > 0 {
				s.index(t)
			}
		}
		indexAll()
		if n, one := s.count(t, "SELECT COUNT(*) FROM search_entries"), s.count(t, "SELECT COUNT(DISTINCT message_id) FROM search_entries"); n != sessions*each || one != n {
			t.Errorf("got %d entries of %d messages, want %d", n, one, sessions*each)
		}
		compare.Equal(t, "sessions are not indexed", 0, s.count(t, "SELECT COUNT(*) FROM sessions s JOIN session_readers r ON r.session_id = s.id WHERE r.reader = 'search' AND r.seq <> s.last_seq"))
		compare.Equal(t, "reindex: n", sessions, must.Get(repositories.NewSearch(s.Gorm).Reindex(t.Context()))(t))
		indexAll()
		compare.Equal(t, "reindexed: entries", sessions*each, s.count(t, "SELECT COUNT(*) FROM search_entries"))
	})
}

// The sessions with the newest activity are indexed first, whatever the others have to be indexed, and many with
// as many statements as one.
func TestIndexTakesTheNewest(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		older, newer := s.session(t).ID, s.session(t).ID
		for id, n := range map[core.SessionID]int{older: 8, newer: 1} {
			messages := make([]core.Message, n)
			for i := range messages {
				messages[i] = core.Message{Role: core.RoleUser, Content: strings.Repeat("pumps ", 20_000)}
			}
			must.Do(t, repositories.Fillup(t.Context(), s.Gorm, id, messages))
		}
		for range 5 {
			s.turns(t, s.session(t).ID, 1)
		}
		s.turns(t, newer, 1)
		var n int
		asked := s.recorded(t, func() { n, _ = must.Get2(repositories.NewSearch(s.Gorm).IndexNext(t.Context()))(t) })
		compare.True(t, len(asked) <= 11 && n >= 13, "%d messages were indexed with %d statements, want at least 13 with at most 11", n, len(asked))
		compare.Equal(t, "entries of the newest session", 3, s.count(t, "SELECT COUNT(*) FROM search_entries WHERE session_id = ? AND message_id IS NOT NULL", newer))
		if s.Dialect() == "sqlite" {
			compare.Equal(t, "parts of the index of words", 1, s.count(t, "SELECT COUNT(DISTINCT segid) FROM search_words_idx"))
		}
		s.index(t)
		compare.Equal(t, "entries of all", 21, s.count(t, "SELECT COUNT(*) FROM search_entries WHERE message_id IS NOT NULL"))
	})
}

// A long phrase is found where it stands, and not where only its beginning and its
// words do; a search ends with its context.
func TestSearchLongPhrases(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		session := must.Get(s.sessions.Create(t.Context(), core.Session{Owner: "ann", Title: "x"}))(t)
		s.finish(t, s.accept(t, ask(session.ID, "one two three four five six seven eight nine")).Run, "one two three four five six nine eight seven")
		const long, other = `"one two three four five six seven eight nine"`, `"one two three four five six nine eight seven"`
		for query, want := range map[string][]string{
			long:                                    {"one two three four five six seven eight nine"},
			other:                                   {"one two three four five six nine eight seven"},
			"one -" + long:                          {"one two three four five six nine eight seven"},
			`"one two three four five six eight"`:   {},
			long + " ten":                           {},
			"one.two.three.four.five.six.seven.ei*": {"one two three four five six seven eight nine"},
		} {
			compare.Equal(t, query, want, s.contents(t, ann(), core.SearchQuery{Text: query}))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		compare.True(t, compare.ErrorOf(repositories.NewSearch(s.Gorm).Messages(ctx, ann(), core.SearchQuery{Text: "one"})) != nil, "got no error of a search that was canceled")
	})
}
