package slack_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/provider"
	"bobbin/tests/slackfake/fakeslack"
)

// Posts in Slack are deleted with their session, or with a user, if that is requested: by the API
// and by an operator. Otherwise they stay, and the report says so. The name of a purged user is
// looked up again when the user comes back.
func TestSlackPurge(t *testing.T) {
	t.Parallel()
	inWorkspace(t, func(t *testing.T, w *workspace) {
		purge := w.house.NewClient(w.house.App.Token())
		first := w.ask(t, "", 1)
		session := w.sessions(t, "the session", func(list []core.Session) bool { return len(list) == 1 })[0]
		must.Get(apptest.SendAsync(t.Context(), w.house, core.SendMessage{SessionID: session.ID, Content: "From the web", Source: core.SourceWeb}))(t)
		w.awaitAnswers(t, first, 3)
		kept, removed := w.ask(t, "", 1), w.ask(t, "", 1)
		if w.lookUps() != 1 {
			t.Errorf("Slack was asked %d times for Alice's name, want once", w.lookUps())
		}
		d := w.delete(t, `{"session_id": "`+string(session.ID)+`", "slack_posts": true}`)
		if diff := cmp.Diff(&core.PurgedPosts{Found: 3, Deleted: 3}, d.Report.SlackPosts); diff != "" || !d.SlackPosts {
			t.Errorf("deletion %+v (-want +got):\n%s", d, diff)
		}
		w.wantPosts(t, first, 0)
		one := w.sessionOf(t, kept)
		report := must.Get(client.Call(t.Context(), purge, ops.PurgeSessions, core.PurgeSessions{IDs: []core.SessionID{one}, PurgeOptions: core.PurgeOptions{Force: true}}))(t)
		if notes := strings.Join(report.Notes, "\n"); report.SlackPosts != nil || !strings.Contains(notes, "what was posted in Slack stays there") {
			t.Errorf("without the flag: got %+v with the notes %s", report.SlackPosts, notes)
		}
		w.wantPosts(t, kept, 1)
		user := core.PurgeUser{Owner: core.LocalOwner, User: "slack:" + w.ws.ID + "/" + w.alice.ID, PurgeOptions: core.PurgeOptions{Force: true, SlackPosts: true}}
		report = must.Get(client.Call(t.Context(), purge, ops.PurgeUser, user))(t)
		compare.Equal(t, "a user's posts", &core.PurgedPosts{Found: 1, Deleted: 1}, report.SlackPosts)
		w.wantPosts(t, removed, 0)
		w.ask(t, "", 1)
		if w.lookUps() != 2 {
			t.Errorf("Slack was asked %d times for Alice's name, want a second time after the purge", w.lookUps())
		}
	})
}

// An edit and a deletion that wait for the end of a run are removed with their author, also one who
// is linked by e-mail, and with their session.
func TestSlackPurgeOfWaitingChanges(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		g := &barriers{ended: t.Context().Done(), held: map[string]barrier{}}
		model := apptest.NewProvider(t, provider.Options{Hold: g.hold})
		w := newWorkspace(t, apptest.New, url, apptest.WithModel("slow", 8192, 1024, model),
			func(c *config.Config) { c.Slack.LinkByEmail = true })
		p := apptest.NewDisk(t, w.house, url)
		carol := w.ws.AddUser("Carol", "")
		root := w.post(t, w.alice, "", w.mention("hello"))
		w.conversation(t, 2)
		bobs := w.post(t, w.bob, root, "the pump is red")
		w.conversation(t, 4)
		carols := w.post(t, carol, root, "the pump is tall")
		session, _ := w.conversation(t, 6)
		held := g.add("wait")
		w.post(t, w.alice, root, "wait")
		held.await(t)
		defer close(held.open)
		must.Do(t, w.bob.Edit(w.channel, bobs, "the pump is blue"))
		must.Do(t, carol.Delete(w.channel, carols))
		const waiting = " FROM slack_inbox WHERE lane LIKE 'change/%' AND finished_at IS NULL AND attempts > 0 AND lease_owner = ''"
		for limit, n := time.Now().Add(time.Minute), 0; n < 2; apptest.PauseBriefly(t) {
			if p.ReadRow(&n, "SELECT COUNT(*)"+waiting); time.Now().After(limit) {
				t.Fatalf("%d changes wait after a minute, want 2", n)
			}
		}
		for _, user := range []string{"bob@example.org", "slack:" + w.ws.ID + "/" + carol.ID} {
			var n int
			if p.ReadRow(&n, "SELECT COUNT(*)"+waiting+" AND user_id = ? AND session_id = ?", user, session.ID); n != 1 {
				t.Errorf("%s: %d changes wait with the user and the session, want 1", user, n)
			}
		}
		purge := w.house.NewClient(w.house.App.Token())
		report := must.Get(client.Call(t.Context(), purge, ops.PurgeUser, core.PurgeUser{Owner: core.LocalOwner, User: "bob@example.org", PurgeOptions: core.PurgeOptions{Force: true}}))(t)
		var left int
		if p.ReadRow(&left, "SELECT COUNT(*) FROM slack_inbox WHERE payload LIKE '%the pump is blue%'"); left != 0 || report.Left() != 0 {
			t.Errorf("after the purge of Bob %d edits and %d rows are left", left, report.Left())
		}
		report = must.Get(client.Call(t.Context(), purge, ops.PurgeSessions, core.PurgeSessions{IDs: []core.SessionID{session.ID}, PurgeOptions: core.PurgeOptions{Force: true}}))(t)
		if p.ReadRow(&left, "SELECT COUNT(*) FROM slack_inbox WHERE payload LIKE '%message_deleted%'"); left != 0 || report.Left() != 0 {
			t.Errorf("after the purge of the session %d deletions and %d rows are left", left, report.Left())
		}
	})
}

// lookUps returns how often Slack was asked for a person's name.
func (w *workspace) lookUps() int { return len(w.Calls("users.info")) }

// sessionOf returns the session of the thread.
func (w *workspace) sessionOf(t *testing.T, root string) core.SessionID {
	t.Helper()
	for _, s := range must.Get(client.Call(t.Context(), w.house, ops.ListSessions, core.SessionQuery{}))(t).Items {
		for _, m := range apptest.ListMessages(t, w.house.Client, s.ID) {
			if strings.Contains(string(m.Metadata), root) {
				return s.ID
			}
		}
	}
	t.Fatalf("no session has the thread %s", root)
	return ""
}

// wantPosts checks how many posts of the app the thread has.
func (w *workspace) wantPosts(t *testing.T, root string, want int) {
	t.Helper()
	var got []fakeslack.Message
	for _, m := range w.ws.Thread(w.channel, root) {
		if m.AppID != "" {
			got = append(got, m)
		}
	}
	if len(got) != want {
		t.Errorf("thread %s: got the posts %+v, want %d", root, got, want)
	}
}

// delete requests a deletion and waits for it.
func (w *workspace) delete(t *testing.T, body string) core.Deletion {
	t.Helper()
	answer := must.Get(w.house.HTTP.Post(w.house.URL+"/api/v1/deletions", "application/json", strings.NewReader(body)))(t)
	defer answer.Body.Close()
	id := strings.TrimPrefix(answer.Header.Get("Location"), "/api/v1/deletions/")
	return must.Get(apptest.AwaitDeletion(t.Context(), w.house, core.DeletionID(id)))(t)
}
