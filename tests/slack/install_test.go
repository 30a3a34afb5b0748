package slack_test

import (
	"context"
	"errors"
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
	"bobbin/tests/slackfake/fakeslack"
)

// installedIn starts a fake Slack with two workspaces, whose channels have the same id, and a
// Bobbin that is installed in both by OAuth: on PostgreSQL two processes.
func installedIn(t *testing.T, url string, o fakeslack.Options) (acme, other *workspace, houses []*apptest.Bobbin) {
	t.Helper()
	s, err := fakeslack.New(o)
	if err != nil {
		t.Fatal(err)
	}
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
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.house.URL+slack.InstallPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultTransport.RoundTrip(request) // which follows no redirect
	if err != nil {
		t.Fatal(err)
	}
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
	err := w.Wait(t.Context(), func() bool {
		answers := 0
		for _, m := range w.ws.Thread(w.channel, root) {
			if m.AppID != "" && m.Markdown() != "" && (m.Stream == nil || !m.Stream.Open) {
				answers++
			}
		}
		return answers >= n
	})
	if err != nil {
		t.Fatal(err)
	}
}

// failedCalls returns the calls that Slack refused.
func (w *workspace) failedCalls() []fakeslack.Call {
	return slices.DeleteFunc(w.Calls(""), func(c fakeslack.Call) bool { return c.Error == "" })
}

// Each workspace has its own token: threads in both are answered there, tokens are rotated while
// messages flow, and the removal of the app from one stops only that one.
func TestSlackManyWorkspaces(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		acme, other, houses := installedIn(t, url, fakeslack.Options{RotateTokens: true, TokenLife: time.Hour + 2*time.Second}) // they are replaced an hour before the end
		first, second := acme.ask(t, "", 1), other.ask(t, "", 1)
		for n := 2; len(rotations(acme.Server)) < 2 || n < 4; n++ {
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
		before := len(acme.callsOf(acme.ws.ID))
		for _, s := range sessions { // from the web, in both
			if _, err := acme.house.SendAsync(t.Context(), core.SendMessage{SessionID: s.ID, Content: "and its size?", Source: core.SourceWeb}); err != nil {
				t.Fatal(err)
			}
		}
		posted := len(other.ws.Thread(other.channel, second))
		if err := other.Wait(t.Context(), func() bool { return len(other.ws.Thread(other.channel, second)) == posted+2 }); err != nil {
			t.Fatal(err)
		}
		for _, c := range acme.callsOf(acme.ws.ID)[before:] {
			if len(houses) == 1 || c.Error == "" { // another process may try the dead token for some seconds
				t.Errorf("after the removal Slack got %+v", c)
			}
		}
	})
}

// One installation for an organization serves all of its workspaces, and no other one: events,
// commands, clicks and posts use its token, which is rotated, and its removal ends all of them.
func TestSlackOrganization(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		s, err := fakeslack.New(fakeslack.Options{RotateTokens: true, TokenLife: time.Hour + 2*time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		var all []*workspace
		for _, name := range []string{"north", "south", "foreign"} {
			w := &workspace{Server: s, ws: s.AddWorkspace(name)}
			if name != "foreign" {
				w.ws.EnterpriseID = "E1"
			}
			w.channel = w.ws.AddChannel("", "pumps").ID // ids of channels are unique in an organization
			w.alice = w.ws.AddUser("Alice", "")
			all = append(all, w)
		}
		north, south, foreign := all[0], all[1], all[2]
		south.bob = south.ws.AddUser("Bob", "")
		houses := oauthHouses(t, url, s, func(c *config.Config) { c.Slack.Agent, c.Slack.Approvers = "careful", []string{south.bob.ID} })
		north.house, south.house = houses[0], houses[0]
		north.installApp(t, north.alice.ApproveForOrganization)
		foreign.ws.Install() // not by Bobbin, which has no token for it
		foreign.post(t, foreign.alice, "", foreign.mention("hello?"))
		roots := []string{north.ask(t, "", 1), south.ask(t, "", 1)}
		for n := 2; len(rotations(s)) < 1 || n < 4; n++ {
			north.ask(t, roots[0], n)
			south.ask(t, roots[1], n)
		}
		sessions := north.sessions(t, "two sessions", func(list []core.Session) bool { return len(list) == 2 })
		users := []string{sessions[0].UserID, sessions[1].UserID}
		slices.Sort(users)
		if want := []string{"slack:" + north.ws.ID + "/" + north.alice.ID, "slack:" + south.ws.ID + "/" + south.alice.ID}; !slices.Equal(users, want) {
			t.Errorf("got the users %q, want %q", users, want)
		}
		if got, err := south.alice.Command(south.channel, "/bobbin", "context"); err != nil || got.Status != 200 {
			t.Fatalf("got %+v, %v", got, err)
		}
		south.awaitPrivate(t, south.alice, 1)
		posts := slices.DeleteFunc(south.ws.Thread(south.channel, roots[1]), func(m fakeslack.Message) bool { return !strings.Contains(string(m.Blocks), core.SlackActionFeedback) })
		if got, err := south.alice.Click(south.channel, posts[0].TS, core.SlackActionFeedback, string(core.RatingUp)); err != nil || got.Status != 200 {
			t.Fatalf("got %+v, %v", got, err)
		}
		south.awaitPrivate(t, south.alice, 2)
		south.approve(t, south.bob, south.post(t, south.alice, "", south.mention("use the calculator")))
		south.sessions(t, "the decision", func(list []core.Session) bool {
			return len(list) == 3 && !slices.ContainsFunc(list, func(s core.Session) bool { return s.Status != core.SessionIdle })
		})
		if failed := north.failedCalls(); len(failed) > 0 {
			t.Errorf("Slack refused %+v", failed)
		}
		if n := len(foreign.callsOf(foreign.ws.ID)); n > 0 || len(s.Calls("oauth.v2.access")) != 1+len(rotations(s)) {
			t.Errorf("got %d calls for a workspace without an installation, and %d installations", n, len(s.Calls("oauth.v2.access")))
		}
		south.ws.Uninstall()
		for limit := time.Now().Add(time.Minute); !slices.ContainsFunc(houses, noticedRemoval); apptest.PauseBriefly(t) {
			if time.Now().After(limit) {
				t.Fatal("not noticed within a minute")
			}
		}
	})
}

// A thread keeps its session when its workspace joins an organization, also one that was attached
// without naming it; a reply and what is posted go on, with a token of the organization, too.
func TestSlackThreadJoinsOrganization(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		s, err := fakeslack.New(fakeslack.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		w := &workspace{Server: s, ws: s.AddWorkspace("acme"), house: oauthHouses(t, url, s)[0]}
		w.channel, w.alice = w.ws.AddChannel("", "pumps").ID, w.ws.AddUser("Alice", "")
		w.installApp(t, w.alice.Approve)
		begun, attached := w.ask(t, "", 1), w.post(t, w.alice, "", "a thread")
		session := apptest.Must(w.house.CreateSession(t.Context(), core.Session{Title: "web"}))(t)
		apptest.Must(w.house.AttachSlack(t.Context(), core.SlackThread{SessionID: session.ID, Team: w.ws.ID, Channel: w.channel, Thread: attached, Mode: core.SlackTwoWay}))(t)
		p := apptest.NewDisk(t, w.house, url)
		for limit, busy := time.Now().Add(time.Minute), 1; busy > 0; apptest.PauseBriefly(t) { // one that finds a dead token waits for minutes
			if p.ReadRow(&busy, "SELECT COUNT(*) FROM slack_threads WHERE lease_owner <> '' OR sent_seq < last_seq"); time.Now().After(limit) {
				t.Fatal("a thread is behind after a minute")
			}
		}
		w.ws.Uninstall()
		w.ws.JoinOrganization("E1")
		if _, err := w.house.AttachSlack(t.Context(), core.SlackThread{SessionID: w.sessionOf(t, begun), Team: "T0OTHER", Channel: "C1", Thread: begun}); !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), "not installed") {
			t.Errorf("a workspace without the app: got error %v, want one that says so", err)
		}
		w.installApp(t, w.alice.ApproveForOrganization)
		for _, root := range []string{begun, attached} {
			w.post(t, w.alice, root, "and its size?")
		}
		w.awaitAnswers(t, begun, 2)
		w.awaitAnswers(t, attached, 1)
		if all := w.sessions(t, "the sessions", func([]core.Session) bool { return true }); len(all) != 2 {
			t.Errorf("got the sessions %+v, want the two of before", all)
		}
	})
}

// approve clicks the button that allows a tool call, once the thread has it, and returns its post.
func (w *workspace) approve(t *testing.T, by *fakeslack.User, root string) (button string) {
	t.Helper()
	if err := w.Wait(t.Context(), func() bool {
		for _, m := range w.ws.Thread(w.channel, root) {
			if strings.Contains(string(m.Blocks), core.SlackActionApprove) {
				button = m.TS
			}
		}
		return button != ""
	}); err != nil {
		t.Fatal(err)
	}
	if got, err := by.Click(w.channel, button, core.SlackActionApprove, ""); err != nil || got.Status != 200 {
		t.Fatalf("got %+v, %v", got, err)
	}
	return button
}

// noticedRemoval reports whether the log says that the app was removed.
func noticedRemoval(h *apptest.Bobbin) bool {
	return strings.Contains(h.Log.String(), "app removed from a workspace of Slack")
}

// rotations returns the exchanges of refresh tokens.
func rotations(s *fakeslack.Server) []fakeslack.Call {
	return slices.DeleteFunc(s.Calls("oauth.v2.access"), func(c fakeslack.Call) bool { return c.Args["grant_type"] != "refresh_token" })
}

// callsOf returns the calls with tokens of the team.
func (w *workspace) callsOf(team string) []fakeslack.Call {
	return slices.DeleteFunc(w.Calls(""), func(c fakeslack.Call) bool { return c.TeamID != team })
}
