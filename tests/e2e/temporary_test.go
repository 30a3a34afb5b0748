package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
)

// A temporary session answers like every other, without a call for a title or a summary: of a
// conversation that does not fit the oldest messages are left out.
func TestTemporarySession(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		p := apptest.NewProvider(t, provider.Options{Record: true})
		h := apptest.New(t, url, apptest.WithModel("house", 2_000, 256, p), withAgentFile(t, "plain", "model: house\n"), func(c *config.Config) { c.Titles = true })
		session, err := h.CreateSession(t.Context(), core.Session{Agent: "plain", UserID: "carol", Temporary: true})
		if err != nil || !session.Temporary || session.ExpiresAt == nil {
			t.Fatalf("got %+v, %v, want a temporary session", session, err)
		}
		const rounds = 12
		for i := range rounds {
			apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: session.ID, Content: fmt.Sprintf("question %d: %s", i, strings.Repeat("word ", 150))})
		}
		all := p.Received()
		for _, r := range all {
			if system := strings.Join(r.System, "\n"); strings.Contains(system, "titles of conversations") || strings.Contains(system, "You summarize conversations") {
				t.Errorf("got a request for a title or a summary: %.80s", system)
			}
		}
		if last := all[len(all)-1]; len(all) != rounds || len(last.Messages) >= 2*rounds-1 {
			t.Errorf("got %d requests, the last with %d messages, want one a question, and the oldest left out", len(all), len(last.Messages))
		}
		got, err := h.Session(t.Context(), session.ID)
		if err != nil || got.Title != "" || got.SummaryVersion != 0 || got.MessageCount != 2*rounds {
			t.Errorf("got title %q, summary %d, %d messages, %v, want neither and all messages", got.Title, got.SummaryVersion, got.MessageCount, err)
		}
		report, err := h.Context(t.Context(), session.ID)
		if err != nil || report.Policy != "off" {
			t.Errorf("got the policy %s, %v, want off", report.Policy, err)
		}
		page, err := h.Sessions(t.Context(), core.SessionQuery{Archived: true})
		if err != nil || len(page.Items) != 0 {
			t.Errorf("got %d sessions in the list, %v, want none", len(page.Items), err)
		}
		hits, err := h.Search(t.Context(), core.SearchQuery{Text: "question"})
		if err != nil || len(hits.Items) != 0 {
			t.Errorf("got %d hits, %v, want none", len(hits.Items), err)
		}
		other := apptest.NewSession(t, h.Client, core.Session{Agent: "plain"})
		if s, err := h.Session(t.Context(), other); err != nil || s.Temporary {
			t.Errorf("got %+v, %v, want a session like others", s, err)
		}
	})
}
