package repositories_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/searchtext"
	"bobbin/app/db"
	"bobbin/app/db/dbtest"
	"bobbin/app/db/repositories"
)

// contents returns the excerpts of a page.
func (s *store) contents(t testing.TB, scope core.Scope, q core.SearchQuery) []string {
	t.Helper()
	out := []string{}
	for _, h := range s.search(t, scope, q).Items {
		out = append(out, h.Excerpt)
	}
	return out
}

// titlesWith returns the titles of the sessions that the text finds.
func (s *store) titlesWith(t testing.TB, scope core.Scope, text string) []string {
	t.Helper()
	page, err := s.sessions.List(t.Context(), scope, core.SessionQuery{Text: text})
	if err != nil {
		t.Fatalf("sessions with %q: %v", text, err)
	}
	out := []string{}
	for _, it := range page.Items {
		out = append(out, it.Title)
	}
	return out
}

// What was deleted, what belongs to others, and what is not on the path is not
// found; copies in forks are.
func TestSearchFindsOnlyWhatItMay(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		session, err := s.sessions.Create(t.Context(), core.Session{Owner: "ann", UserID: "carol", Title: "old"})
		if err != nil {
			t.Fatal(err)
		}
		s.finish(t, s.accept(t, ask(session.ID, "red pump")).Run, "red answer")
		s.finish(t, s.accept(t, ask(session.ID, "red valve")).Run, "blue answer")
		s.edit(t, session.ID, s.log(t, session.ID)[2].ID, "green valve")
		want := func(what string, scope core.Scope, q core.SearchQuery, want ...string) {
			t.Helper()
			if diff := cmp.Diff(append([]string{}, want...), s.contents(t, scope, q)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
		want("the path", ann(), core.SearchQuery{Text: "red"}, "red answer", "red pump")
		want("all branches", ann(), core.SearchQuery{Text: "red", AllBranches: true}, "red valve", "red answer", "red pump")
		want("a role", ann(), core.SearchQuery{Text: "red", Role: core.RoleAssistant}, "red answer")
		want("her user", carol(), core.SearchQuery{Text: "pump"}, "red pump")
		want("another user", core.Scope{Owner: "ann", User: "dave"}, core.SearchQuery{Text: "red"})
		want("no user of hers", carol(), core.SearchQuery{Text: "red", UserID: "dave"})
		want("another owner", bob(), core.SearchQuery{Text: "red"})
		_, err = repositories.NewSearch(s.Gorm).Messages(t.Context(), bob(), core.SearchQuery{Text: "red", SessionID: session.ID})
		if !errors.Is(err, core.ErrNotFound) {
			t.Errorf("another owner's session: got %v, want core.ErrNotFound", err)
		}

		branches := repositories.NewBranches(s.Gorm)
		fork, err := branches.Fork(t.Context(), ann(), core.ForkSession{SessionID: session.ID, Title: "forked"})
		if err != nil {
			t.Fatal(err)
		}
		want("the fork", ann(), core.SearchQuery{Text: "pump", SessionID: fork.ID}, "red pump")
		if _, err := branches.Delete(t.Context(), ann(), session.ID, s.log(t, session.ID)[0].ID); err != nil {
			t.Fatal(err)
		}
		want("deleted", ann(), core.SearchQuery{Text: "pump", SessionID: session.ID, AllBranches: true})
		want("its copy", ann(), core.SearchQuery{Text: "pump"}, "red pump")

		if got := s.titlesWith(t, ann(), "pump"); !slices.Equal(got, []string{"forked"}) {
			t.Errorf("sessions with pump: got %q, want the fork", got)
		}
		title := "New name"
		if _, _, err := s.sessions.Update(t.Context(), ann(), session.ID, core.SessionPatch{Title: &title}); err != nil {
			t.Fatal(err)
		}
		for text, want := range map[string][]string{"name": {"New name"}, "old": {}, "forked": {"forked"}, "blue": {}, "valve": {"New name", "forked"}} {
			if got := s.titlesWith(t, ann(), text); !slices.Equal(got, want) {
				t.Errorf("sessions with %q: got %q, want %q", text, got, want)
			}
		}
		if got := s.titlesWith(t, bob(), "name"); len(got) > 0 {
			t.Errorf("another owner: got %q", got)
		}
	})
}

// What an agent searched and found is no message to be found: it would find itself.
func TestSearchLeavesItselfOut(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		run := s.accept(t, ask(s.session(t).ID, "where is the pump")).Run
		s.write(t, core.RunWrite{RunID: run.ID, SessionID: run.SessionID, Attempt: 1, Messages: []core.Message{
			{Role: core.RoleAssistant, ToolCalls: []core.ToolCall{
				{ID: "1", Name: core.ToolSearchHistory, Arguments: `{"query":"pump"}`}, {ID: "2", Name: "shell", Arguments: `{"command":"grep valve"}`}}},
			{Role: core.RoleTool, ToolCallID: "1", ToolName: core.ToolSearchHistory, Content: "the pump is here"},
			{Role: core.RoleTool, ToolCallID: "2", ToolName: "shell", Content: "no such file"},
		}})
		if got := s.contents(t, ann(), core.SearchQuery{Text: "pump"}); !slices.Equal(got, []string{"where is the pump"}) {
			t.Errorf("got %q, want the question alone", got)
		}
		if got := s.contents(t, ann(), core.SearchQuery{Text: "valve"}); !slices.Equal(got, []string{`shell {"command":"grep valve"}`}) {
			t.Errorf("got %q, want the call of the other tool", got)
		}
	})
}

// Pages neither repeat nor omit anything, also of messages of the same time and
// while others are added; the bounds of time hold.
func TestSearchPages(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		at := func(i int) time.Time { return time.Date(2025, 1, 1, 0, 0, i/50, 0, time.UTC) }
		var messages []core.Message
		for i := range 300 {
			messages = append(messages, core.Message{Role: core.RoleUser, Content: fmt.Sprintf("pump %d", i), CreatedAt: at(i)})
		}
		if err := repositories.Fillup(t.Context(), s.Gorm, id, messages); err != nil {
			t.Fatal(err)
		}
		var got []string
		q := core.SearchQuery{Text: "pump", PageQuery: core.PageQuery{Limit: 7}}
		for n := 0; ; n++ {
			page := s.search(t, ann(), q)
			for _, h := range page.Items {
				got = append(got, h.Excerpt)
			}
			if page.NextCursor == nil {
				break
			}
			q.Cursor = *page.NextCursor
			newer := core.Message{Role: core.RoleUser, Content: "pump later", CreatedAt: at(10_000 + n)}
			if err := repositories.Fillup(t.Context(), s.Gorm, id, []core.Message{newer}); err != nil {
				t.Fatal(err)
			}
		}
		want := make([]string, 300)
		for i := range want {
			want[i] = fmt.Sprintf("pump %d", 299-i)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("pages (-want +got):\n%s", diff)
		}
		between := s.search(t, ann(), core.SearchQuery{Text: "pump", After: at(100), Before: at(150), PageQuery: core.PageQuery{Limit: 200}})
		if n := len(between.Items); n != 50 || between.Items[0].Excerpt != "pump 149" || between.Items[49].Excerpt != "pump 100" {
			t.Errorf("between two times: got %d", n)
		}
		for _, q := range []core.SearchQuery{
			{Text: "pump", PageQuery: core.PageQuery{Cursor: "x"}}, {Text: "pump", PageQuery: core.PageQuery{Limit: 201}}, {Text: "..."},
		} {
			if _, err := repositories.NewSearch(s.Gorm).Messages(t.Context(), ann(), q); !errors.Is(err, core.ErrInvalid) {
				t.Errorf("%+v: got %v, want core.ErrInvalid", q, err)
			}
		}
	})
}

// No text is a syntax error of a database, and each is found or not as searchtext
// says, whatever is in the messages: also where a tsvector cannot hold all.
func TestSearchWhateverIsWritten(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		r := rand.New(rand.NewPCG(3, 1))
		pieces := []string{
			" ", " ", "a", "b", "ab", "a b", "getUserId", "_", "-", `"`, "'", `\`, ":", "*", "(", ")", "{", "}", "^", "+", "&", "|", "!", "<->", "<2>", "%", "?", ";--",
			" AND ", " OR ", " NOT ", " NEAR(", "words : ", "scope:", "_oann", "$1", "@s", "水", "泵", "水泵", "é", "e\u0301", "ß", "İ", "ﬁ", "½", "ﷺ", "🎉", "\u200d", "ー", "ﾊﾞ", "กำ", "\ufeff", "\u00a0",
		}
		write := func(n int) string {
			var b strings.Builder
			for range 1 + r.IntN(n) {
				b.WriteString(pieces[r.IntN(len(pieces))])
			}
			return b.String()
		}
		id := s.session(t).ID
		texts := []string{
			strings.Repeat("a b ", 300) + "a a b ab", // more places of a word than a tsvector has
			strings.Repeat("x ", 17_000) + "a b",     // behind the last place
			strings.Repeat("水泵的", 6000), "ab" + strings.Repeat("é", 3000),
		}
		for range 150 {
			texts = append(texts, write(12))
		}
		var messages []core.Message
		for i, text := range texts {
			messages = append(messages, core.Message{Role: core.RoleUser, Content: text, CreatedAt: time.Unix(int64(i), 0)})
		}
		if err := repositories.Fillup(t.Context(), s.Gorm, id, messages); err != nil {
			t.Fatal(err)
		}
		for range 200 {
			query := write(6)
			q, err := searchtext.Parse(query)
			if err != nil {
				continue
			}
			var want []int64
			for i := len(texts) - 1; i >= 0; i-- {
				if _, ok := q.Find(texts[i]); ok {
					want = append(want, int64(i)+1)
				}
			}
			var got []int64
			for _, h := range s.search(t, ann(), core.SearchQuery{Text: query, PageQuery: core.PageQuery{Limit: 200}}).Items {
				got = append(got, h.Seq)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%q: got %v, want %v", query, got, want)
			}
			s.titlesWith(t, ann(), query)
		}
	})
}

// What was stored before there was an index is indexed a little at a time, by any
// number of processes, and searches say that it is not done.
func TestSearchFill(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		d := dbtest.Open(t, url)
		if err := d.MigrateTo(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
		now, session := core.Now(), core.NewID[core.SessionID]()
		g := d.Gorm.WithContext(t.Context())
		if err := g.Exec("INSERT INTO sessions (id, owner, title, last_seq, message_count, created_at, updated_at) VALUES (?, 'ann', 'old pumps', 250, 250, ?, ?)", session, now, now).Error; err != nil {
			t.Fatal(err)
		}
		for i := range 250 {
			err := g.Exec("INSERT INTO messages (id, session_id, owner, seq, role, content, status, created_at) VALUES (?, ?, 'ann', ?, 'user', ?, 'complete', ?)",
				core.NewID[core.MessageID](), session, i+1, fmt.Sprintf("pump %d", i), now.Add(time.Duration(i)*time.Second)).Error
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := d.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		s := open(d)
		if page := s.search(t, ann(), core.SearchQuery{Text: "pump"}); !page.Indexing || len(page.Items) != 0 {
			t.Errorf("before: got %d hits and indexing %t, want none and true", len(page.Items), page.Indexing)
		}
		s.accept(t, ask(session, "a new pump"))
		for n := 0; ; n++ {
			_, done, err := repositories.NewSearch(s.Gorm).Fill(t.Context())
			if err != nil || n > 20 {
				t.Fatalf("fill %d: %v", n, err)
			}
			if done {
				break
			}
		}
		page := s.search(t, ann(), core.SearchQuery{Text: "pump", PageQuery: core.PageQuery{Limit: 200}})
		rest := s.search(t, ann(), core.SearchQuery{Text: "pump", PageQuery: core.PageQuery{Limit: 200, Cursor: *page.NextCursor}})
		if n := len(page.Items) + len(rest.Items); n != 251 || page.Indexing || page.Items[0].Excerpt != "pump 249" {
			t.Errorf("after: got %d hits, the first %q, indexing %t; want 251 and false", n, page.Items[0].Excerpt, page.Indexing)
		}
		if got := s.titlesWith(t, ann(), "old"); len(got) != 1 {
			t.Errorf("titles: got %q, want one", got)
		}
	})
}
