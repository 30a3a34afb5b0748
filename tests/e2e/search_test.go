package e2e_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
)

// hitsOf searches and returns what was found as "title: excerpt".
func hitsOf(t *testing.T, h *apptest.Bobbin, q core.SearchQuery) []string {
	t.Helper()
	page, err := client.Call(t.Context(), h, ops.Search, q)
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
		pumps := apptest.NewSession(t, h.Client, ops.NewSession{Title: "Pumps", UserID: "ann"})
		trips := apptest.NewSession(t, h.Client, ops.NewSession{Title: "水泵 Reise", UserID: "bob"})
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
		_, err := client.Call(t.Context(), h, ops.Search, core.SearchQuery{Text: "-pump"})
		wantProblem(t, err, core.ErrInvalid, 422, "add a word to search for")
		_, err = client.Call(t.Context(), h, ops.Search, core.SearchQuery{Text: "pump", SessionID: core.NewID[core.SessionID]()})
		wantProblem(t, err, core.ErrNotFound, 404, "does not exist")

		for text, want := range map[string]string{"reise": "水泵 Reise", "hall": "Pumps", "pump": "Pumps, 水泵 Reise", "nowhere": ""} {
			page := apptest.Must(client.Call(t.Context(), h, ops.ListSessions, core.SessionQuery{Text: text}))(t)
			var titles []string
			for _, s := range page.Items {
				titles = append(titles, s.Title)
			}
			if got := strings.Join(titles, ", "); got != want {
				t.Errorf("sessions with %q: got %q, want %q", text, got, want)
			}
		}
		title := "Ventile"
		if _, err := client.Call(t.Context(), h, ops.UpdateSession, ops.SessionPatch{InSession: ops.InSession{SessionID: pumps}, SessionPatch: core.SessionPatch{Title: &title}}); err != nil {
			t.Fatal(err)
		}
		if page, err := client.Call(t.Context(), h, ops.ListSessions, core.SessionQuery{Text: "ventile"}); err != nil || len(page.Items) != 1 {
			t.Errorf("the new title: got %d sessions and %v, want 1", len(page.Items), err)
		}
	})
}
