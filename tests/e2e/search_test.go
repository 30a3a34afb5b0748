package e2e_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/db/repositories"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
)

// hitsOf searches and returns what was found as "title: excerpt".
func hitsOf(t *testing.T, h *apptest.Bobbin, q core.SearchQuery) []string {
	t.Helper()
	page, err := h.Search(t.Context(), q)
	if err != nil {
		t.Fatalf("search %q: %v", q.Text, err)
	}
	hits := []string{}
	for _, it := range page.Items {
		hits = append(hits, it.SessionTitle+": "+it.Excerpt)
	}
	return hits
}

// What was said can be found at once, by those
// who may, newest first; and sessions by their titles and messages.
func TestSearch(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		h := apptest.New(t, url)
		pumps := apptest.NewSession(t, h.Client, core.Session{Title: "Pumps", UserID: "ann"})
		trips := apptest.NewSession(t, h.Client, core.Session{Title: "水泵 Reise", UserID: "bob"})
		apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: pumps, Content: "The pump of hall three lost ERR_CONN_RESET"})
		apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: trips, Content: "Our pump is in 三号车间的水泵房"})

		user := core.RoleUser
		for _, tt := range []struct {
			name string
			q    core.SearchQuery
			want []string
		}{
			{"newest first", core.SearchQuery{Text: "pump", Role: user, Sort: core.SortNewest}, []string{"水泵 Reise: Our pump is in 三号车间的水泵房", "Pumps: The pump of hall three lost ERR_CONN_RESET"}},
			{"the best first", core.SearchQuery{Text: "Which halls have lost pumps?", Role: user}, []string{"Pumps: The pump of hall three lost ERR_CONN_RESET", "水泵 Reise: Our pump is in 三号车间的水泵房"}},
			{"a session", core.SearchQuery{Text: "pump", Role: user, SessionID: pumps}, []string{"Pumps: The pump of hall three lost ERR_CONN_RESET"}},
			{"a user", core.SearchQuery{Text: "pump", Role: user, UserID: "bob"}, []string{"水泵 Reise: Our pump is in 三号车间的水泵房"}},
			{"Chinese", core.SearchQuery{Text: "水泵房", Role: user}, []string{"水泵 Reise: Our pump is in 三号车间的水泵房"}},
			{"part of a name", core.SearchQuery{Text: "conn_reset", Role: user}, []string{"Pumps: The pump of hall three lost ERR_CONN_RESET"}},
			{"a title is no message", core.SearchQuery{Text: "Reise"}, []string{}},
		} {
			if diff := cmp.Diff(tt.want, hitsOf(t, h, tt.q)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.name, diff)
			}
		}
		_, err := h.Search(t.Context(), core.SearchQuery{Text: "-pump"})
		wantProblem(t, err, core.ErrInvalid, 422, "add a word to search for")
		_, err = h.Search(t.Context(), core.SearchQuery{Text: "pump", SessionID: core.NewID[core.SessionID]()})
		wantProblem(t, err, core.ErrNotFound, 404, "does not exist")

		for text, want := range map[string]string{"reise": "水泵 Reise", "hall": "Pumps", "pump": "Pumps, 水泵 Reise", "nowhere": ""} {
			page, err := h.Sessions(t.Context(), core.SessionQuery{Text: text})
			if err != nil {
				t.Fatal(err)
			}
			var titles []string
			for _, s := range page.Items {
				titles = append(titles, s.Title)
			}
			if got := strings.Join(titles, ", "); got != want {
				t.Errorf("sessions with %q: got %q, want %q", text, got, want)
			}
		}
		title := "Ventile"
		if _, err := h.UpdateSession(t.Context(), pumps, core.SessionPatch{Title: &title}); err != nil {
			t.Fatal(err)
		}
		if page, err := h.Sessions(t.Context(), core.SessionQuery{Text: "ventile"}); err != nil || len(page.Items) != 1 {
			t.Errorf("the new title: got %d sessions and %v, want 1", len(page.Items), err)
		}
	})
}

// Another owner finds nothing of it.
func TestSearchOfOwners(t *testing.T) {
	t.Parallel()
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), func(c *config.Config) {
		c.Auth.Keys = []config.APIKey{{Name: "ann", Secret: config.NewSecret("ann's long secret")}, {Name: "bob", Secret: config.NewSecret("bob's long secret")}}
		c.Auth.Required = true
	})
	ann, bob := h.NewClient("ann's long secret"), h.NewClient("bob's long secret")
	id := apptest.NewSession(t, ann, core.Session{Title: "secret"})
	apptest.SendMessage(t, ann, core.SendMessage{SessionID: id, Content: "a secret word"})
	for _, c := range []struct {
		who  string
		hits int
	}{{"ann", 1}, {"bob", 0}} {
		client := ann
		if c.who == "bob" {
			client = bob
		}
		page, err := client.Search(t.Context(), core.SearchQuery{Text: "secret", Role: core.RoleUser})
		if err != nil || len(page.Items) != c.hits {
			t.Errorf("%s: got %d hits and %v, want %d", c.who, len(page.Items), err, c.hits)
		}
		sessions, err := client.Sessions(t.Context(), core.SessionQuery{Text: "secret"})
		if err != nil || len(sessions.Items) != c.hits {
			t.Errorf("%s: got %d sessions and %v, want %d", c.who, len(sessions.Items), err, c.hits)
		}
	}
	_, err := bob.Search(t.Context(), core.SearchQuery{Text: "secret", SessionID: id})
	wantProblem(t, err, core.ErrNotFound, 404, "does not exist")
}

// An agent finds and quotes what was said in its session, also what
// only the summary stands for, and nothing of other sessions.
func TestSearchHistory(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		h := apptest.New(t, url)
		id, other := apptest.NewSession(t, h.Client, core.Session{Agent: "researcher"}), apptest.NewSession(t, h.Client, core.Session{})
		first := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "The invoice is 4711-B, please remember it"}).Question
		apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: other, Content: "Another invoice is 4712-C"})
		for range 12 {
			apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "And how are you today?"})
		}
		if _, err := h.Summarize(t.Context(), id, ""); err != nil {
			t.Fatal(err)
		}
		if s := session(t, h.Client, id); s.SummarizedCount == 0 {
			t.Fatal("nothing was summarized")
		}
		tool := tools.NewSearchHistory(repositories.NewSearch(dbtest.Open(t, url).Gorm))
		got, err := tool.Call(t.Context(), tools.Call{
			Arguments: `{"query": "invoice", "role": "user"}`, Session: core.Session{ID: id, Owner: core.LocalOwner, Timezone: "Europe/Vienna"},
		})
		if err != nil {
			t.Fatal(err)
		}
		want := "[message " + string(first.ID) + ", #1, user, "
		if !strings.Contains(got, want) || !strings.Contains(got, "4711-B") || strings.Contains(got, "4712") {
			t.Errorf("got %q, want the one message of the session, with %q", got, want)
		}
	})
}

// Messages that nobody has indexed become searchable while Bobbin runs.
func TestSearchOfOldMessages(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		old := dbtest.Open(t, url)
		id, now := core.NewID[core.SessionID](), core.Now()
		g := old.Gorm.WithContext(t.Context())
		err := g.Exec("INSERT INTO sessions (id, owner, title, last_seq, message_count, created_at, updated_at) VALUES (?, 'local', 'Old pumps', 300, 300, ?, ?)", id, now, now).Error
		if err == nil {
			err = g.Exec("INSERT INTO session_readers (session_id, reader, owner, seq) VALUES (?, 'search', 'local', -1)", id).Error
		}
		for i := 0; err == nil && i < 300; i++ {
			err = g.Exec("INSERT INTO messages (id, session_id, owner, seq, role, content, status, created_at) VALUES (?, ?, 'local', ?, 'user', 'an old pump', 'complete', ?)",
				core.NewID[core.MessageID](), id, i+1, now).Error
		}
		if err != nil {
			t.Fatal(err)
		}
		h := apptest.New(t, url)
		for {
			page, err := h.Search(t.Context(), core.SearchQuery{Text: "pump", Sort: core.SortNewest, PageQuery: core.PageQuery{Limit: 200}})
			if err != nil {
				t.Fatal(err)
			}
			if page.Indexing {
				apptest.PauseBriefly(t)
				continue // the test's time limit ends it
			}
			if len(page.Items) != 200 || page.Items[0].Seq != 300 || page.NextCursor == nil {
				t.Errorf("got %d hits, the first #%d, want the newest 200", len(page.Items), page.Items[0].Seq)
			}
			break
		}
	})
}
