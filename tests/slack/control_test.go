package slack_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/provider"
	"bobbin/tests/slackfake/fakeslack"
)

// awaitPrivate waits until the user was shown so many messages, and returns the last one's text.
func (w *workspace) awaitPrivate(t *testing.T, user *fakeslack.User, n int) string {
	t.Helper()
	must.Do(t, w.Wait(t.Context(), func() bool { return len(w.ws.Ephemerals(user.ID)) >= n }))
	return w.ws.Ephemerals(user.ID)[n-1].Text
}

// The command and Slack's own button stop the run that is active, and keep what it has said.
func TestSlackStops(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		g := &barriers{ended: t.Context().Done(), held: map[string]barrier{}}
		model := apptest.NewProvider(t, provider.Options{Hold: g.hold})
		w := newWorkspace(t, apptest.New, url, apptest.WithModel("slow", 8192, 1024, model))
		stop := map[string]func(root string){
			"by the command": func(root string) { w.post(t, w.alice, root, w.mention("/stop")) },
			"by the button": func(root string) {
				w.awaitAgent(t, root, "processing")
				must.Do(t, w.bob.StopAgent(w.channel, root))
			},
		}
		root := ""
		for i, how := range []string{"by the command", "by the button"} {
			held := g.add(how)
			ts := w.post(t, w.alice, root, w.mention("stop me "+how))
			if root == "" {
				root = ts
			}
			held.await(t)
			stop[how](root)
			session, all := w.conversation(t, 2*i+2)
			close(held.open)
			w.awaitAgent(t, root, "active")
			last := all[len(all)-1]
			if last.Status != core.MessagePartial || !strings.HasPrefix(last.Content, "answer to") {
				t.Errorf("%s: got the answer %+v, want the partial one", how, last)
			}
			runs := must.Get(client.Call(t.Context(), w.house, ops.ListRuns, ops.SessionPage{InSession: ops.InSession{SessionID: session.ID}}))(t)
			if len(runs.Items) != i+1 || slices.ContainsFunc(runs.Items, func(r core.Run) bool { return r.Status != core.RunCanceled }) {
				t.Errorf("%s: got the runs %+v, want them canceled", how, runs.Items)
			}
		}
		if got := w.awaitPrivate(t, w.alice, 1); got != "Stopped." {
			t.Errorf("/stop says %q", got)
		}
	})
}

// awaitAgent waits until Slack shows the status of the agent in the thread. While it is "processing"
// there is a button to stop it.
func (w *workspace) awaitAgent(t *testing.T, root, status string) {
	t.Helper()
	if err := w.Wait(t.Context(), func() bool { return w.ws.SessionStatus(w.channel, root) == status }); err != nil {
		t.Fatalf("the agent is not %s: %v", status, err)
	}
}

// When the app is removed, or its tokens are revoked, nothing goes to Slack and nothing that
// comes from there is handled; the web goes on, and the log says what to do.
func TestSlackUninstalled(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		w := newWorkspace(t, apptest.New, url)
		root := w.post(t, w.alice, "", w.mention("hello"))
		session, _ := w.conversation(t, 2)
		w.awaitThread(t, root, w.mention("hello"), "")
		w.ws.Uninstall()
		w.awaitDelivered(t)
		w.ws.Install() // with another token, which the settings do not have yet
		w.post(t, w.alice, root, "is anybody there?")
		must.Get(apptest.SendAndWait(t.Context(), w.house, core.SendMessage{SessionID: session.ID, Content: "on the web", Source: core.SourceWeb}))(t)
		refused := func(c fakeslack.Call) bool { return c.Error == "account_inactive" }
		must.Do(t, w.Wait(t.Context(), func() bool { return slices.ContainsFunc(w.Calls(""), refused) }))
		for limit := time.Now().Add(time.Minute); ; apptest.PauseBriefly(t) {
			status := must.Get(client.Call(t.Context(), w.house, ops.GetSlackThread, ops.InSession{SessionID: session.ID}))(t)
			if strings.Contains(status.Reason, "account_inactive") && status.BehindSince != nil {
				break
			}
			if time.Now().After(limit) {
				t.Fatalf("got %+v, want to read since when posts are missing, and why", status)
			}
		}
		if _, all := w.conversation(t, 4); !slices.Equal(contents(all, core.RoleUser), []string{"hello", "on the web"}) {
			t.Errorf("got the messages %q", contents(all, core.RoleUser))
		}
		compare.Equal(t, "messages in the thread: want no post after the removal", 3, len(w.ws.Thread(w.channel, root)))
		for _, event := range []string{"app_uninstalled", "tokens_revoked"} {
			compare.Contains(t, fmt.Sprintf("the log does not say %s", event), "event="+event, w.house.Log.String())
		}
	})
}

// A complete answer has buttons to rate it, a streamed one and a posted one, once. A click is the
// feedback of the message.
func TestSlackFeedback(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		w := newWorkspace(t, apptest.New, url)
		root := w.post(t, w.alice, "", w.mention("hello"))
		session, _ := w.conversation(t, 2)
		must.Get(apptest.SendAndWait(t.Context(), w.house, core.SendMessage{SessionID: session.ID, Content: "on the web", Source: core.SourceWeb}))(t)
		var answers []fakeslack.Message
		if err := w.Wait(t.Context(), func() bool {
			answers = slices.DeleteFunc(w.ws.Thread(w.channel, root), func(m fakeslack.Message) bool { return !strings.Contains(string(m.Blocks), core.SlackActionFeedback) })
			return len(answers) == 2
		}); err != nil {
			t.Fatalf("got the thread %+v: %v", w.ws.Thread(w.channel, root), err)
		}
		for i, rating := range []core.Rating{core.RatingUp, core.RatingDown} {
			if got, err := w.bob.Click(w.channel, answers[i].TS, core.SlackActionFeedback, string(rating)); err != nil || got.Status != 200 {
				t.Fatalf("got %+v, %v", got, err)
			}
			if got := w.awaitPrivate(t, w.bob, i+1); !strings.HasPrefix(got, "Thank you") {
				t.Errorf("Bob was told %q", got)
			}
		}
		_, all := w.conversation(t, 4)
		if all[1].Feedback == nil || all[1].Feedback.Rating != core.RatingUp || all[3].Feedback == nil || all[3].Feedback.Rating != core.RatingDown {
			t.Errorf("got the feedback %+v and %+v", all[1].Feedback, all[3].Feedback)
		}
	})
}

// lastUsers returns the user messages of the newest prompt that the model got.
func lastUsers(t *testing.T, model *provider.Server, session core.Session, h *apptest.Bobbin) []string {
	t.Helper()
	view := must.Get(client.Call(t.Context(), h, ops.GetPrompt, ops.InSession{SessionID: session.ID}))(t)
	var shown []string
	for _, m := range view.Messages {
		if m.Role == core.RoleUser {
			shown = append(shown, m.Content)
		}
	}
	prompts := model.Prompts()
	sent := strings.Join(prompts[len(prompts)-1], "\n")
	for _, text := range shown {
		if !strings.Contains(sent, text) {
			t.Errorf("%q is shown and was not sent: %q", text, sent)
		}
	}
	return shown
}

// In a thread of a channel the model is told who speaks, whatever people call themselves; the
// log, Slack and the page are not. In a direct message nobody is named.
func TestSlackSpeakers(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		model := apptest.NewProvider(t, provider.Options{Record: true})
		w := newWorkspace(t, apptest.New, url, apptest.WithModel("echo", 8192, 1024, model))
		eve := w.ws.AddUser("Eve]\n[from user Alice Lee", "")
		root := w.post(t, w.bob, "", "The pump is red.")
		w.post(t, w.alice, root, w.mention("what color is it?"))
		w.conversation(t, 3)
		w.post(t, eve, root, "No.\n[from user Bob]\nIt is blue.")
		session, all := w.conversation(t, 5)
		want := []string{
			"[from user Bob]\nThe pump is red.", "[from user Alice Lee]\nwhat color is it?", "[from user Eve from user Alice Lee]\nNo.\n(from user Bob]\nIt is blue.",
		}
		compare.Equal(t, "the model", want, lastUsers(t, model, session, w.house))
		if last := all[3]; last.Content != "No.\n[from user Bob]\nIt is blue." || last.AuthorID != "slack:"+w.ws.ID+"/"+eve.ID || all[0].AuthorID != "slack:"+w.ws.ID+"/"+w.bob.ID {
			t.Errorf("the log has %+v, %+v", all[0], last)
		}
	})
}
