package slack_test

import (
	"slices"
	"strings"
	"sync"
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
	"bobbin/tests/process"
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
		compare.Equal(t, "Alice's name is looked up", 1, w.lookUps())
		d := w.delete(t, `{"session_id": "`+string(session.ID)+`", "slack_posts": true}`)
		if diff := cmp.Diff(&core.PurgedPosts{Found: 3, Deleted: 3}, d.Report.SlackPosts); diff != "" || !d.SlackPosts {
			t.Errorf("deletion %+v (-want +got):\n%s", d, diff)
		}
		w.wantPosts(t, first, 0)
		one := w.sessionOf(t, kept)
		report := must.Get(client.Call(t.Context(), purge, ops.Purge, core.Purge{IDs: []core.SessionID{one}, PurgeOptions: core.PurgeOptions{Force: true}}))(t)
		if notes := strings.Join(report.Notes, "\n"); report.SlackPosts != nil || !strings.Contains(notes, "what was posted in Slack stays there") {
			t.Errorf("without the flag: got %+v with the notes %s", report.SlackPosts, notes)
		}
		w.wantPosts(t, kept, 1)
		user := core.Purge{Owner: core.LocalOwner, User: "slack:" + w.ws.ID + "/" + w.alice.ID, PurgeOptions: core.PurgeOptions{Force: true, SlackPosts: true}}
		report = must.Get(client.Call(t.Context(), purge, ops.Purge, user))(t)
		compare.Equal(t, "a user's posts", &core.PurgedPosts{Found: 1, Deleted: 1}, report.SlackPosts)
		w.wantPosts(t, removed, 0)
		w.ask(t, "", 1)
		compare.Equal(t, "Alice's name is looked up anew after the purge", 2, w.lookUps())
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
		process.Await(t, "two changes wait", func() bool {
			var n int
			p.ReadRow(&n, "SELECT COUNT(*)"+waiting)
			return n == 2
		})
		for _, user := range []string{"bob@example.org", "slack:" + w.ws.ID + "/" + carol.ID} {
			var n int
			if p.ReadRow(&n, "SELECT COUNT(*)"+waiting+" AND user_id = ? AND session_id = ?", user, session.ID); n != 1 {
				t.Errorf("%s: %d changes wait with the user and the session, want 1", user, n)
			}
		}
		purge := w.house.NewClient(w.house.App.Token())
		report := must.Get(client.Call(t.Context(), purge, ops.Purge, core.Purge{Owner: core.LocalOwner, User: "bob@example.org", PurgeOptions: core.PurgeOptions{Force: true}}))(t)
		var left int
		if p.ReadRow(&left, "SELECT COUNT(*) FROM slack_inbox WHERE payload LIKE '%the pump is blue%'"); left != 0 || report.Left() != 0 {
			t.Errorf("after the purge of Bob %d edits and %d rows are left", left, report.Left())
		}
		report = must.Get(client.Call(t.Context(), purge, ops.Purge, core.Purge{IDs: []core.SessionID{session.ID}, PurgeOptions: core.PurgeOptions{Force: true}}))(t)
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
	compare.True(t, len(got) == want, "thread %s: got the posts %+v, want %d", root, got, want)
}

// delete requests a deletion and waits for it.
func (w *workspace) delete(t *testing.T, body string) core.Deletion {
	t.Helper()
	answer := must.Get(w.house.HTTP.Post(w.house.URL+"/api/v1/deletions", "application/json", strings.NewReader(body)))(t)
	defer answer.Body.Close()
	id := strings.TrimPrefix(answer.Header.Get("Location"), "/api/v1/deletions/")
	return must.Get(apptest.AwaitDeletion(t.Context(), w.house, core.DeletionID(id)))(t)
}

// awaitThread waits until the thread's messages begin with these words.
func (w *workspace) awaitThread(t *testing.T, root string, want ...string) []fakeslack.Message {
	t.Helper()
	var got []fakeslack.Message
	err := w.Wait(t.Context(), func() bool {
		got = w.ws.Thread(w.channel, root)
		return slices.EqualFunc(got, want, func(m fakeslack.Message, text string) bool {
			return strings.HasPrefix(m.Markdown(), text) && (m.Stream == nil || !m.Stream.Open)
		})
	})
	must.True(t, err == nil, "got the thread %+v (%v), want %q", got, err, want)
	return got
}

// A post whose answer is lost is known by the event that Slack sends of it: before the thread is
// read, and also when that is refused and the post was unknown. It is there once.
func TestSlackLostAnswerIsFoundByItsEvent(t *testing.T) {
	t.Parallel()
	inWorkspace(t, func(t *testing.T, w *workspace) {
		root := w.ask(t, "", 1)
		session, _ := w.conversation(t, 2)
		say := func(text string, n int) {
			t.Helper()
			w.Inject(fakeslack.Fault{Method: "chat.postMessage", Times: 1, LoseAnswer: true})
			must.Get(apptest.SendAsync(t.Context(), w.house, core.SendMessage{SessionID: session.ID, Content: text, Source: core.SourceWeb}))(t)
			w.awaitAnswers(t, root, n)
		}
		w.Inject(fakeslack.Fault{Method: "conversations.replies", Error: "missing_scope"})
		say("the first", 3)
		if calls := w.Calls("conversations.replies"); len(calls) > 0 || len(w.faults(t, session.ID)) > 0 {
			t.Errorf("the thread was read (%+v), or there are faults: %+v", calls, w.faults(t, session.ID))
		}
		w.DisturbEvents(fakeslack.EventFaults{Held: true})
		say("the second", 5)
		if f := w.faults(t, session.ID); len(f) != 1 || f[0].State != core.SlackPostUnknown {
			t.Errorf("without events: got the faults %+v, want an unknown post", f)
		}
		w.DisturbEvents(fakeslack.EventFaults{})
		process.Await(t, "no faults after the events", func() bool { return len(w.faults(t, session.ID)) == 0 })
		w.wantPosts(t, root, 5)
	})
}

// faults returns what is wrong with the posts of the session.
func (w *workspace) faults(t *testing.T, session core.SessionID) []core.SlackFault {
	t.Helper()
	return must.Get(client.Call(t.Context(), w.house, ops.GetSlackThread, ops.InSession{SessionID: session}))(t).Faults
}

// barriers hold answers to questions with certain words.
type barriers struct {
	ended <-chan struct{} // the test is over: nothing is held any more
	mu    sync.Mutex
	held  map[string]barrier // guarded by mu
}

// barrier is closed until the test opens it.
type barrier struct{ asked, open chan struct{} }

// hold waits for the barrier of the question, if it has one.
func (g *barriers) hold(question string) {
	g.mu.Lock()
	var found barrier
	for mark, one := range g.held {
		if strings.Contains(question, mark) {
			found = one
			delete(g.held, mark)
		}
	}
	g.mu.Unlock()
	if found.asked != nil {
		close(found.asked)
		select {
		case <-found.open:
		case <-g.ended:
		}
	}
}

func (g *barriers) add(mark string) barrier {
	g.mu.Lock()
	defer g.mu.Unlock()
	one := barrier{make(chan struct{}), make(chan struct{})}
	g.held[mark] = one
	return one
}

// await waits until a question is held.
func (b barrier) await(t *testing.T) {
	t.Helper()
	select {
	case <-b.asked:
	case <-time.After(apptest.Patience):
		t.Fatal("no question came to the barrier")
	}
}
