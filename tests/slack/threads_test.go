package slack_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/process"
	"bobbin/tests/slackfake/fakeslack"
)

// workspace is a fake Slack with a channel, two people, and a Bobbin that is installed there.
type workspace struct {
	*fakeslack.Server

	ws         *fakeslack.Workspace
	channel    string
	alice, bob *fakeslack.User
	house      *apptest.Bobbin
	ahead      *atomic.Int64 // of Slack's clock, in nanoseconds
}

// inWorkspace runs a test with a workspace and its Bobbin, once for each database.
func inWorkspace(t *testing.T, do func(t *testing.T, w *workspace)) {
	t.Helper()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) { do(t, newWorkspace(t, apptest.New, url)) })
}

// newWorkspace starts both. Open builds the house with the settings.
func newWorkspace(t *testing.T, open func(t testing.TB, url string, settings ...apptest.Setting) *apptest.Bobbin, url string, settings ...apptest.Setting) *workspace {
	t.Helper()
	return newPatientWorkspace(t, []time.Duration{0, time.Second, 5 * time.Second}, open, url, settings...)
}

// newPatientWorkspace is newWorkspace where Slack repeats an event after these times.
func newPatientWorkspace(t *testing.T, delays []time.Duration, open func(t testing.TB, url string, settings ...apptest.Setting) *apptest.Bobbin, url string, settings ...apptest.Setting) *workspace {
	t.Helper()
	w := &workspace{ahead: new(atomic.Int64)}
	s := must.Get(fakeslack.New(fakeslack.Options{RetryDelays: delays, AckTimeout: 5 * time.Second,
		Now: func() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }}))(t)
	t.Cleanup(func() { _ = s.Close() })
	w.Server, w.ws = s, s.AddWorkspace("acme")
	w.channel = w.ws.AddChannel("C1", "pumps").ID
	w.alice, w.bob = w.ws.AddUser("Alice Lee", "alice@example.org"), w.ws.AddUser("Bob", "bob@example.org")
	token := w.ws.Install()
	w.house = open(t, url, append([]apptest.Setting{func(c *config.Config) {
		c.Slack.BotToken, c.Slack.SigningSecret, c.Slack.APIURL = config.NewSecret(token), config.NewSecret("signing-secret"), s.APIURL()
	}}, settings...)...)
	s.SetURLs(fakeslack.URLsBelow(w.house.URL))
	return w
}

// mention returns a text that is for the bot.
func (w *workspace) mention(text string) string { return w.ws.Bot().Mention() + " " + text }

// post writes a message into the channel, or into a thread, and returns its ts.
func (w *workspace) post(t *testing.T, from *fakeslack.User, thread, text string) string {
	t.Helper()
	return must.Get(from.Reply(w.channel, thread, text))(t)
}

// postLate writes a message for the bot that Slack delivers late, in five seconds, and returns its ts.
func (w *workspace) postLate(t *testing.T, text string) string {
	t.Helper()
	w.DisturbEvents(fakeslack.EventFaults{Dead: true})
	defer w.DisturbEvents(fakeslack.EventFaults{})
	ts := w.post(t, w.alice, "", w.mention(text))
	must.Do(t, w.Wait(t.Context(), func() bool {
		return !slices.ContainsFunc(w.Deliveries(), func(d fakeslack.Delivery) bool { return len(d.Attempts) < 3 })
	}))
	return ts
}

// awaitDelivered waits until Slack has delivered everything, or given it up.
func (w *workspace) awaitDelivered(t *testing.T) {
	t.Helper()
	must.Do(t, w.WaitDelivered(t.Context()))
}

// sessions returns the sessions once the condition holds.
func (w *workspace) sessions(t *testing.T, what string, holds func([]core.Session) bool) []core.Session {
	t.Helper()
	var page core.Page[core.Session]
	process.Await(t, what, func() bool {
		page = must.Get(client.Call(t.Context(), w.house, ops.ListSessions, core.SessionQuery{}))(t)
		return holds(page.Items)
	})
	return page.Items
}

// conversation returns the only session and its messages once they are so many and no run is
// left.
func (w *workspace) conversation(t *testing.T, n int) (core.Session, []core.Message) {
	t.Helper()
	all := w.sessions(t, "the conversation", func(list []core.Session) bool {
		return len(list) == 1 && list[0].MessageCount == n && list[0].Status == core.SessionIdle
	})
	return all[0], apptest.ListMessages(t, w.house.Client, all[0].ID)
}

// contents returns what was said by the role.
func contents(all []core.Message, role core.Role) []string {
	var list []string
	for _, m := range all {
		if m.Role == role {
			list = append(list, m.Content)
		}
	}
	return list
}

// A thread of Slack is a session: its first mention opens it, replies need none, the history is
// there, whoever writes has a name, and everything arrives once, though each event comes twice (W12, S2).
func TestSlackThread(t *testing.T) {
	t.Parallel()
	inWorkspace(t, func(t *testing.T, w *workspace) {
		w.DisturbEvents(fakeslack.EventFaults{Duplicate: true})
		root := w.post(t, w.bob, "", "The pump is red.")
		w.post(t, w.bob, root, "It stands in <#C1>, says "+w.alice.Mention()+".")
		w.post(t, w.alice, root, w.mention("what color is it &amp; where?"))
		_, all := w.conversation(t, 4)
		compare.Equal(t, "messages", []string{"The pump is red.", "It stands in #pumps, says @Alice Lee.", "what color is it & where?"}, contents(all, core.RoleUser))
		w.post(t, w.bob, root, "And how tall?")
		session, all := w.conversation(t, 6)
		first, last := all[2], all[4]
		alice := "slack:" + w.ws.ID + "/" + w.alice.ID
		if session.UserID != alice || session.Source != core.SourceSlack || first.Source != core.SourceSlack || first.Author != "Alice Lee" ||
			last.Content != "And how tall?" || last.Author != "Bob" || last.ClientMessageID == "" {
			t.Errorf("got the session %+v and the messages %+v, %+v", session, first, last)
		}
		w.post(t, w.bob, "", "not for the bot")
		w.awaitDelivered(t)
		w.conversation(t, 6)
	})
}

// Slack delivers an event late when Bobbin was away. A message that a later one brought along with
// the history is there once, and its author is not told that it is refused.
func TestSlackLateEvent(t *testing.T) {
	t.Parallel()
	inWorkspace(t, func(t *testing.T, w *workspace) {
		root := w.postLate(t, "the pump is red")
		w.post(t, w.bob, root, w.mention("what color is it?"))
		w.awaitDelivered(t)
		w.post(t, w.bob, root, "And how tall?") // handled after the late event
		w.sessions(t, "every message once", func(list []core.Session) bool {
			if len(list) != 1 || list[0].Status != core.SessionIdle {
				return false
			}
			got := contents(apptest.ListMessages(t, w.house.Client, list[0].ID), core.RoleUser)
			return slices.Equal(got, []string{"the pump is red", "what color is it?", "And how tall?"})
		})
		if got := w.ws.Ephemerals(w.alice.ID); len(got) > 0 {
			t.Errorf("Alice was told %+v, want nothing", got)
		}
	})
}

// A reply without a mention reaches Bobbin before the message that opens the session, which Slack
// delivers late: both are in the session, and answered.
func TestSlackLateMention(t *testing.T) {
	t.Parallel()
	inWorkspace(t, func(t *testing.T, w *workspace) {
		root := w.postLate(t, "the pump is red")
		w.post(t, w.bob, root, "and tall")
		_, all := w.conversation(t, 4)
		if got, want := contents(all, core.RoleUser), []string{"the pump is red", "and tall"}; !slices.Equal(got, want) || all[2].Author != "Bob" {
			t.Errorf("got the messages %q of %q, want %q", got, all[2].Author, want)
		}
	})
}

// A direct message needs no mention, and brings its files; what is not accepted is said to its
// author alone.
func TestSlackDirectMessage(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		w := newWorkspace(t, apptest.New, url, func(c *config.Config) { c.Slack.LinkByEmail = true })
		must.Get(w.alice.Upload(w.alice.DM().ID, "", "read this", "pump.txt", []byte("The pump is red.")))(t)
		session, all := w.conversation(t, 2)
		if session.UserID != "alice@example.org" || all[0].Content != "read this" || len(all[0].Parts) != 1 || all[0].Parts[0].Name != "pump.txt" {
			t.Errorf("got the session of %q and the message %+v", session.UserID, all[0])
		}
		must.Get(w.bob.Upload(w.bob.DM().ID, "", "and this", "pump.bin", []byte{0, 1, 2, 3}))(t)
		w.sessions(t, "the message without its file", func(list []core.Session) bool {
			return len(list) == 2 && list[0].MessageCount == 2 && list[1].MessageCount == 2
		})
		if got := w.ws.Ephemerals(w.bob.ID); len(got) != 1 || !strings.Contains(got[0].Text, "pump.bin") || len(w.ws.Ephemerals(w.alice.ID)) != 0 {
			t.Errorf("got %+v, want Bob told of his file", got)
		}
	})
}

// An edit in Slack changes the message in place, what it says and not what follows; it waits
// while a run is at work. Nothing runs, and the old text is a revision.
func TestSlackEdit(t *testing.T) {
	t.Parallel()
	inWorkspace(t, func(t *testing.T, w *workspace) {
		root := w.post(t, w.alice, "", w.mention("the pump is red"))
		must.Do(t, w.alice.Edit(w.channel, root, w.mention("the pump is &lt;blue&gt;, says "+w.bob.Mention()))) // the run may be at work
		w.sessions(t, "the edit", func(list []core.Session) bool {
			if len(list) != 1 || list[0].MessageCount != 2 || list[0].Status != core.SessionIdle {
				return false
			}
			all := apptest.ListMessages(t, w.house.Client, list[0].ID)
			return all[0].Content == "the pump is <blue>, says @Bob" && all[0].RevisedAt != nil && all[1].Role == core.RoleAssistant
		})
		session, all := w.conversation(t, 2)
		first, err := client.Call(t.Context(), w.house, ops.GetMessage, apptest.InMessage(session.ID, all[0].ID))
		if err != nil || len(first.Revisions) != 1 || first.Revisions[0].Content != "the pump is red" {
			t.Errorf("got %+v, error %v, want the old text as a revision", first, err)
		}
		must.Do(t, w.alice.Unfurl(w.channel, root))
		w.post(t, w.alice, root, "and?")
		w.conversation(t, 4)
	})
}

// A deletion in Slack leaves nothing of the message; it waits while a run is at work.
func TestSlackDeletion(t *testing.T) {
	t.Parallel()
	inWorkspace(t, func(t *testing.T, w *workspace) {
		root := w.post(t, w.alice, "", w.mention("the code is 4711"))
		must.Do(t, w.alice.Delete(w.channel, root)) // the run may be at work
		session := w.sessions(t, "the session", func(list []core.Session) bool { return len(list) == 1 })[0]
		process.Await(t, "the deletion", func() bool { // lists leave out what was deleted
			page := must.Get(client.Call(t.Context(), w.house, ops.ListMessages, ops.MessageList{InSession: ops.InSession{SessionID: session.ID}, MessageQuery: core.MessageQuery{AllBranches: true}}))(t)
			return len(page.Items) == 1 && page.Items[0].Role == core.RoleAssistant
		})
	})
}

// What is typed on the fake Slack's page mentions whom it names, also where it begins with another name.
func TestSlackPage(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, apptest.New, dbtest.MigratedSQLiteURL(t))
	act := must.Get(json.Marshal(map[string]string{"team": w.ws.ID, "user": w.alice.ID, "channel": w.channel, "act": "post", "text": "@bobbin, ask @bob"}))(t)
	resp := must.Get(http.Post(w.URL+"/page/act", "application/json", bytes.NewReader(act)))(t)
	must.Do(t, resp.Body.Close())
	_, all := w.conversation(t, 2)
	compare.Equal(t, "contents(all, core.RoleUser)", []string{"ask @Bob"}, contents(all, core.RoleUser))
}

// Commands in a thread are answered to their author alone, whoever that is, and are no messages of the session.
func TestSlackCommands(t *testing.T) {
	t.Parallel()
	inWorkspace(t, func(t *testing.T, w *workspace) {
		root := w.post(t, w.alice, "", w.mention("the pump is red"))
		w.conversation(t, 2)
		answer := func(from *fakeslack.User, n int, words string) {
			t.Helper()
			compare.Contains(t, "w.awaitPrivate(t, from, n): want in it", words, w.awaitPrivate(t, from, n))
		}
		w.post(t, w.bob, root, w.mention("/context"))
		answer(w.bob, 1, "tokens")
		w.post(t, w.bob, root, w.mention("/stop"))
		answer(w.bob, 2, "Stopped")
		w.post(t, w.bob, "", w.mention("/summarize"))
		answer(w.bob, 3, "no conversation")
		for i, text := range []string{"it is tall", "it is old"} {
			w.post(t, w.alice, root, text)
			w.conversation(t, 2*i+4)
		}
		w.post(t, w.bob, root, w.mention("/summarize the color"))
		answer(w.bob, 4, "Summarized: version 1")
		compare.Equal(t, "status", 200, must.Get(w.alice.Command(w.channel, "/bobbin", "context"))(t).Status)
		answer(w.alice, 1, "tokens")
		compare.Equal(t, "status", 200, must.Get(w.alice.Shortcut(w.channel, root, core.SlackShortcutContext))(t).Status)
		answer(w.alice, 2, "tokens")
		w.conversation(t, 6)
	})
}

// A click decides about a tool call if the person who asked, or an approver, does it; whoever is
// later gets to know who has decided.
func TestSlackApproval(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		w := newWorkspace(t, apptest.NewAsking, url, func(c *config.Config) { c.Slack.Agent = "careful" })
		carol := w.ws.AddUser("Carol", "")
		w.house.Stop()
		w.house.Config.Slack.Approvers = []string{w.bob.ID}
		w.house.Start()
		w.SetURLs(fakeslack.URLsBelow(w.house.URL))
		root := w.post(t, w.alice, "", w.mention("use the calculator"))
		session := w.sessions(t, "the question", func(list []core.Session) bool { return len(list) == 1 && list[0].Status == core.SessionWaiting })[0]
		run, err := client.Call(t.Context(), w.house, ops.GetRun, ops.InRun{RunID: session.ActiveRunID})
		must.True(t, err == nil && len(run.Approvals) == 1, "got the run %+v, %v", run, err)
		button, err := w.ws.Bot().Send(w.channel, fakeslack.Message{ThreadTS: root, Text: "May it?", Blocks: []byte(`[{"type":"actions","elements":[
			{"type":"button","action_id":"bobbin_approve","text":{"type":"plain_text","text":"Approve"},"value":"` + string(run.ID) + "/" + string(run.Approvals[0].ID) + `"}]}]`)})
		must.Do(t, err)
		click := func(by *fakeslack.User) {
			t.Helper()
			compare.Equal(t, "status", 200, must.Get(by.Click(w.channel, button, core.SlackActionApprove, ""))(t).Status)
		}
		click(carol)
		compare.Contains(t, "Carol was told", "Only the person who asked", w.awaitPrivate(t, carol, 1))
		click(w.bob)
		end := apptest.ReadTurn(t, w.house.WatchRun(t.Context(), run.ID, core.Cursor{})).Run
		events := w.sessions(t, "the end", func(list []core.Session) bool { return list[0].Status == core.SessionIdle })
		compare.True(t, end.Status == core.RunSucceeded && len(events) == 1, "got the run %s", end.Status)
		click(carol) // an approver or not: too late
		w.awaitPrivate(t, carol, 2)
	})
}

// With an app token Bobbin connects to Slack: nothing has to reach it. What is not acknowledged
// comes again, and is answered once.
func TestSlackSocketMode(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		w := newWorkspace(t, apptest.New, url, func(c *config.Config) {
			c.Slack.SigningSecret, c.Slack.AppToken = config.Secret{}, config.NewSecret("xapp-1-A0001-1")
		})
		must.Do(t, w.Wait(t.Context(), func() bool { return w.Sockets() == 1 }))
		w.DisturbEvents(fakeslack.EventFaults{Duplicate: true})
		root := w.post(t, w.alice, "", w.mention("the pump is red"))
		w.conversation(t, 2)
		w.Disconnect("refresh_requested") // what is sent meanwhile comes again
		w.post(t, w.alice, root, "and tall")
		_, all := w.conversation(t, 4)
		compare.Equal(t, "contents(all, core.RoleUser)", []string{"the pump is red", "and tall"}, contents(all, core.RoleUser))
		must.Get(w.alice.Command(w.channel, "/bobbin", "context"))(t)
		w.awaitPrivate(t, w.alice, 1)
	})
}

// A socket that is open and silent is noticed: Bobbin opens another one, and what was sent to the silent one
// comes again.
func TestSlackSilentSocket(t *testing.T) {
	t.Parallel()
	delays := slices.Repeat([]time.Duration{time.Second}, 100) // also while a busy machine is slow to notice
	w := newPatientWorkspace(t, delays, apptest.New, dbtest.MigratedSQLiteURL(t), func(c *config.Config) { c.Slack.AppToken = config.NewSecret("xapp-1-A0001-1") })
	must.Do(t, w.Wait(t.Context(), func() bool { return w.Sockets() == 1 }))
	root := w.post(t, w.alice, "", w.mention("the pump is red"))
	w.conversation(t, 2)
	w.SilenceSockets()
	w.post(t, w.alice, root, "and tall")
	w.conversation(t, 4)
}

func TestMain(m *testing.M) { apptest.Main(m) }
