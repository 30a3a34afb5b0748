package slack_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/slackfake/fakeslack"
)

// send posts a message of which more than the text is given.
func (w *workspace) send(t *testing.T, from *fakeslack.User, channel string, m fakeslack.Message) string {
	t.Helper()
	return must.Get(from.Send(channel, m))(t)
}

// What apps post in attachments and blocks is in the prompt, and what people forward, in the history
// as well as live.
func TestSlackAttachments(t *testing.T) {
	t.Parallel()
	inWorkspace(t, func(t *testing.T, w *workspace) {
		alerts := w.ws.AddBot("alerts")
		root := w.send(t, alerts, w.channel, fakeslack.Message{Attachments: []byte(`[
			{"color": "#f00", "title": "Disk &gt; 90%", "title_link": "https://grafana.example/d/1", "text": "on <https://web-3.example|web-3>", "fallback": "no",
			 "fields": [{"title": "Severity", "value": "high"}], "id": 7, "ts": 1700000000.5, "actions": [{"text": "Acknowledge"}]}, {"fallback": "CPU is high"}]`)})
		w.send(t, alerts, w.channel, fakeslack.Message{ThreadTS: root, Text: "New alert", Blocks: []byte(`[{"type": "header", "text": {"type": "plain_text", "text": "Queue is full"}},
			{"type": "section", "text": {"type": "mrkdwn", "text": "*orders* has <https://q.example|9,000>"}, "fields": [{"type": "mrkdwn", "text": "owner: Bob"}]},
			{"type": "context", "elements": [{"type": "mrkdwn", "text": "since 10:00"}, {"type": "image", "image_url": "https://x.example/a.png", "alt_text": "graph"}]},
			{"type": "actions", "elements": [{"type": "button", "action_id": "ack", "text": {"type": "plain_text", "text": "Acknowledge"}}]}]`)})
		forward := `[{"is_share": true, "is_msg_unfurl": true, "author_name": "Carol", "channel_id": "C1", "footer": "Posted in #pumps", "text": "The pump\nis red.", "fallback": "no"}, {"from_url": "https://x.example", "title": "a page"}]`
		w.send(t, w.bob, w.channel, fakeslack.Message{ThreadTS: root, Attachments: []byte(forward)})
		w.post(t, w.alice, root, w.mention("what is wrong here?"))
		_, all := w.conversation(t, 5)
		forwarded := "Forwarded from Carol (Posted in #pumps):\n> The pump\n> is red."
		want := []string{
			"[Disk > 90%](https://grafana.example/d/1)\non [web-3](https://web-3.example)\nSeverity: high\n\nCPU is high",
			"Queue is full\n*orders* has [9,000](https://q.example)\nowner: Bob\n\nsince 10:00",
			forwarded, "what is wrong here?",
		}
		compare.Equal(t, "messages", want, contents(all, core.RoleUser))
		w.send(t, w.bob, w.channel, fakeslack.Message{ThreadTS: root, Text: "and this?", Attachments: []byte(forward)})
		_, all = w.conversation(t, 7)
		compare.Equal(t, "the comment and what was forwarded", "and this?\n"+forwarded, all[5].Content)
		w.send(t, w.bob, w.channel, fakeslack.Message{ThreadTS: root, Text: "and these?", Attachments: []byte(`[{"is_share": true, "text": "", "message_blocks": [{"team": "T1", "message": {"blocks": [
			{"type": "section", "text": {"type": "mrkdwn", "text": "*Pumps*"}},
			{"type": "table", "rows": [[{"type": "raw_text", "text": "name"}, {"type": "raw_text", "text": "state"}],
				[{"type": "raw_text", "text": "P1"}, {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [{"type": "text", "text": "red"}]}]}]]}]}}]}]`)})
		if _, all = w.conversation(t, 9); all[7].Content != "and these?\nForwarded from somebody:\n> *Pumps*\n> | name | state |\n> | P1 | red |" {
			t.Errorf("got %q, want the text in the blocks", all[7].Content)
		}
	})
}

// A message that is only forwarded, to the bot alone, is answered; of one in which nothing can be
// read its author is told.
func TestSlackForwardedToBot(t *testing.T) {
	t.Parallel()
	inWorkspace(t, func(t *testing.T, w *workspace) {
		w.send(t, w.bob, w.bob.DM().ID, fakeslack.Message{Attachments: []byte(`[{"image_url": "https://x.example/a.gif"}]`)})
		compare.Contains(t, "Bob was told", "Nothing of this message can be read", w.awaitPrivate(t, w.bob, 1))
		w.send(t, w.alice, w.alice.DM().ID, fakeslack.Message{Attachments: []byte(`[{"is_share": true, "author_name": "Carol", "channel_id": "C1", "text": "The pump is red."}]`)})
		if _, all := w.conversation(t, 2); all[0].Content != "Forwarded from Carol (#pumps):\n> The pump is red." {
			t.Errorf("got %q", all[0].Content)
		}
		w.send(t, w.bob, w.bob.DM().ID, fakeslack.Message{Attachments: []byte(`[{"is_share": true, "text": "", "message_blocks": [{"message": {"blocks": [{"type": "image"}]}}]}]`)})
		compare.Contains(t, "Bob was told", "Nothing of this message can be read", w.awaitPrivate(t, w.bob, 2))
	})
}

// While Slack does not let the thread be read, a mention is answered without its history, and the
// prompt says that it is missing.
func TestSlackHistoryRefused(t *testing.T) {
	t.Parallel()
	inWorkspace(t, func(t *testing.T, w *workspace) {
		w.Inject(fakeslack.Fault{Method: "conversations.replies", RetryAfter: time.Second})
		root := w.post(t, w.bob, "", "The pump is red.")
		w.post(t, w.alice, root, w.mention("what color is it?"))
		if _, all := w.conversation(t, 3); !strings.HasPrefix(all[0].Content, "[Messages of this thread are missing here") || all[0].Author != "Slack" || all[1].Content != "what color is it?" {
			t.Errorf("got %+v, want to read that the history is missing", all)
		}
	})
}

// A mention that was forgotten, and that an edit adds, is answered in a thread, too; one that an edit
// keeps is not answered again.
func TestSlackForgottenMention(t *testing.T) {
	t.Parallel()
	inWorkspace(t, func(t *testing.T, w *workspace) {
		root := w.post(t, w.bob, "", "The pump is red.")
		ts := w.post(t, w.alice, root, "what color is it?")
		w.awaitDelivered(t)
		must.Do(t, w.alice.Edit(w.channel, ts, w.mention("what color is it?")))
		w.conversation(t, 3)
		for _, text := range []string{"which color is it?", w.mention("which color?")} {
			must.Do(t, w.alice.Edit(w.channel, ts, text))
		}
		w.awaitDelivered(t)
		w.post(t, w.bob, root, "and?") // handled after the mention
		w.sessions(t, "the question once, as it is now", func(list []core.Session) bool {
			return len(list) == 1 && list[0].MessageCount == 5 && list[0].Status == core.SessionIdle &&
				slices.Equal(contents(apptest.ListMessages(t, w.house.Client, list[0].ID), core.RoleUser)[1:], []string{"which color?", "and?"})
		})
	})
}

// Replies that Slack gave up because Bobbin was away are in the prompt of the next message of their
// thread, also where the session changed after they were written, or Slack delivered that message late;
// commands among them are not.
func TestSlackMissedReplies(t *testing.T) {
	t.Parallel()
	inWorkspace(t, func(t *testing.T, w *workspace) {
		w.ahead.Store(-int64(10 * time.Minute))
		root := w.post(t, w.alice, "", w.mention("the pump is red"))
		_, all := w.conversation(t, 2)
		w.awaitThread(t, root, w.mention("the pump is red"), all[1].Content)
		w.awaitDelivered(t)
		want := []string{"the pump is red"}
		for i, ahead := range []time.Duration{-8 * time.Minute, 0} {
			w.SetURLs(fakeslack.URLs{})
			want = append(want, fmt.Sprintf("It has %d doors.", i), fmt.Sprintf("%d?", i))
			w.post(t, w.bob, root, want[len(want)-2])
			w.post(t, w.bob, root, w.mention("/context"))
			w.SetURLs(fakeslack.URLsBelow(w.house.URL))
			w.ahead.Store(int64(ahead))
			w.post(t, w.alice, root, want[len(want)-1])
			if _, all = w.conversation(t, 5+3*i); !slices.Equal(contents(all, core.RoleUser), want) || all[2+3*i].Author != "Bob" {
				t.Errorf("got %q of %q, want what Bob said", contents(all, core.RoleUser), all[2+3*i].Author)
			}
		}
	})
}

// Guests get no answer if only members do, and are told so.
func TestSlackMembersOnly(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		w := newWorkspace(t, apptest.New, url, func(c *config.Config) { c.Slack.MembersOnly = true })
		w.bob.Restricted = true
		root := w.post(t, w.bob, "", w.mention("hello"))
		compare.Contains(t, "Bob was told", "Only members", w.awaitPrivate(t, w.bob, 1))
		w.post(t, w.alice, root, w.mention("hello"))
		w.conversation(t, 3)
		w.post(t, w.bob, root, "and me?")
		w.post(t, w.alice, root, "go on")
		if _, all := w.conversation(t, 5); slices.Contains(contents(all, core.RoleUser), "and me?") {
			t.Errorf("got %q, want nothing of Bob's", contents(all, core.RoleUser))
		}
	})
}
