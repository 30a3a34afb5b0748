package slack_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/slack"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/slackfake/fakeslack"
)

// installedIn starts a fake Slack with two workspaces, whose channels have the same id, and a
// Bobbin that is installed in both by OAuth: on PostgreSQL two processes.
func installedIn(t *testing.T, url string, o fakeslack.Options) (acme, other *workspace, houses []*apptest.Bobbin) {
	t.Helper()
	s := must.Get(fakeslack.New(o))(t)
	t.Cleanup(func() { _ = s.Close() })
	houses = oauthHouses(t, url, s)
	var all [2]*workspace
	for i, name := range []string{"acme", "other"} {
		w := &workspace{Server: s, ws: s.AddWorkspace(name), house: houses[0]}
		w.channel = w.ws.AddChannel("C1", "pumps").ID
		w.alice = w.ws.AddUser("Alice", "")
		w.installApp(t, w.alice.Approve)
		all[i] = w
	}
	return all[0], all[1], houses
}

// oauthHouses starts a Bobbin that people install in Slack by OAuth: on PostgreSQL two processes.
func oauthHouses(t *testing.T, url string, s *fakeslack.Server, settings ...apptest.Setting) []*apptest.Bobbin {
	t.Helper()
	oauth := func(c *config.Config) {
		c.Slack.ClientID, c.Slack.ClientSecret, c.Slack.SigningSecret = "1.1", config.NewSecret("client-secret"), config.NewSecret("signing-secret")
		c.Slack.TokenKey, c.Slack.APIURL = config.NewSecret(strings.Repeat("a", 43)+"="), s.APIURL()
	}
	settings = append(settings, oauth)
	h := apptest.NewAsking(t, url, settings...)
	houses := []*apptest.Bobbin{h}
	if strings.HasPrefix(url, "postgres") {
		houses = append(houses, apptest.NewAsking(t, url, append(settings, func(c *config.Config) { c.Replica.Name = "other" })...))
	}
	s.SetURLs(fakeslack.URLsBelow(h.URL))
	return houses
}

// installApp installs the app as the person who approves it does in a browser.
func (w *workspace) installApp(t *testing.T, approve func(context.Context, string, ...*http.Cookie) (int, string, error)) {
	t.Helper()
	request := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, w.house.URL+slack.InstallPath, nil))(t)
	answer, err := http.DefaultTransport.RoundTrip(request) // which follows no redirect
	must.Do(t, err)
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusFound {
		t.Fatalf("got %s, want a redirect", answer.Status)
	}
	status, body, err := approve(t.Context(), answer.Header.Get("Location"), answer.Cookies()...)
	if err != nil || status != http.StatusOK || !strings.Contains(body, "Bobbin is installed") {
		t.Fatalf("got %d %s, %v", status, body, err)
	}
}

// ask asks in a new thread, or in that of the root, and waits for the n-th message of the app
// there. It returns the root.
func (w *workspace) ask(t *testing.T, root string, n int) string {
	t.Helper()
	ts := w.post(t, w.alice, root, w.mention("which color has the pump?"))
	if root == "" {
		root = ts
	}
	w.awaitAnswers(t, root, n)
	return root
}

// awaitAnswers waits until the thread has so many answers, complete ones.
func (w *workspace) awaitAnswers(t *testing.T, root string, n int) {
	t.Helper()
	must.Do(t, w.Wait(t.Context(), func() bool {
		answers := 0
		for _, m := range w.ws.Thread(w.channel, root) {
			if m.AppID != "" && m.Markdown() != "" && (m.Stream == nil || !m.Stream.Open) {
				answers++
			}
		}
		return answers >= n
	}))
}

// failedCalls returns the calls that Slack refused.
func (w *workspace) failedCalls() []fakeslack.Call {
	return slices.DeleteFunc(w.Calls(""), func(c fakeslack.Call) bool { return c.Error == "" })
}

// Each workspace has its own token: threads in both are answered there, and the removal of the app
// from one stops only that one.
func TestSlackManyWorkspaces(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		acme, other, houses := installedIn(t, url, fakeslack.Options{})
		first, second := acme.ask(t, "", 1), other.ask(t, "", 1)
		for n := 2; n < 4; n++ {
			acme.ask(t, first, n)
			other.ask(t, second, n)
		}
		if failed := acme.failedCalls(); len(failed) > 0 {
			t.Errorf("Slack refused %+v", failed)
		}
		sessions := acme.sessions(t, "two sessions", func(list []core.Session) bool { return len(list) == 2 })
		if sessions[0].UserID == sessions[1].UserID || !strings.HasPrefix(sessions[0].UserID, "slack:T") {
			t.Errorf("got the users %s and %s", sessions[0].UserID, sessions[1].UserID)
		}
		acme.ws.Uninstall()
		for limit := time.Now().Add(time.Minute); !slices.ContainsFunc(houses, noticedRemoval); apptest.PauseBriefly(t) {
			if time.Now().After(limit) {
				t.Fatal("not noticed within a minute")
			}
		}
		before, posted := len(acme.callsOf(acme.ws.ID)), len(other.ws.Thread(other.channel, second))
		for _, s := range sessions { // from the web, in both
			must.Get(apptest.SendAsync(t.Context(), acme.house, core.SendMessage{SessionID: s.ID, Content: "and its size?", Source: core.SourceWeb}))(t)
		}
		must.Do(t, other.Wait(t.Context(), func() bool { return len(other.ws.Thread(other.channel, second)) == posted+2 }))
		for _, c := range acme.callsOf(acme.ws.ID)[before:] {
			// The second event of a removal tests the token, too; another process may try the dead one for some seconds.
			if c.Method != "auth.test" && (len(houses) == 1 || c.Error == "") {
				t.Errorf("after the removal Slack got %+v", c)
			}
		}
	})
}

// noticedRemoval reports whether the log says that the app was removed.
func noticedRemoval(h *apptest.Bobbin) bool {
	return strings.Contains(h.Log.String(), "app removed from a workspace of Slack")
}

// callsOf returns the calls with tokens of the team.
func (w *workspace) callsOf(team string) []fakeslack.Call {
	return slices.DeleteFunc(w.Calls(""), func(c fakeslack.Call) bool { return c.TeamID != team })
}
