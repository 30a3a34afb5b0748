package fakeslack_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"

	"bobbin/tests/slackfake/fakeslack"
)

// The example of Slack's documentation.
func TestSign(t *testing.T) {
	t.Parallel()
	body := "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner" +
		"&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
	got := fakeslack.Sign("8f742231b10e8888abcd99yyyzzz85a5", "1531420618", []byte(body))
	if want := "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestVerifyURL(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakeslack.Options{})
	if !w.VerifyURL() {
		t.Error("got no challenge back, want it from the app")
	}
	w.SetURLs(fakeslack.URLs{Events: w.URL + "/nowhere"})
	if w.VerifyURL() {
		t.Error("got a challenge back, want none from an address without an app")
	}
}

// A mention in a channel comes as message and as app_mention, with ids of their own and the
// same ts.
func TestMention(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakeslack.Options{})
	ts := w.say(t, w.ws.Bot().Mention()+" hello")
	got := w.delivered(t)
	if want := []string{"message", "app_mention"}; !cmp.Equal(types(got), want) {
		t.Fatalf("got %v, want %v", types(got), want)
	}
	message, ok := got[0].event.InnerEvent.Data.(*slackevents.MessageEvent)
	mention, isMention := got[1].event.InnerEvent.Data.(*slackevents.AppMentionEvent)
	if !ok || !isMention || message.TimeStamp != ts || mention.TimeStamp != ts || got[0].id == got[1].id {
		t.Errorf("got %+v and %+v, want one ts and two ids", got[0].event, got[1].event)
	}
	if message.ChannelType != "channel" || message.User != w.alice.ID || message.ClientMsgID == "" {
		t.Errorf("got %+v, want a message of Alice in a channel", message)
	}
}

// What the app posts comes back to it with what tells that it is its own.
func TestEcho(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakeslack.Options{})
	metadata := slack.SlackMetadata{EventType: "bobbin_delivery", EventPayload: map[string]any{"delivery_id": "d1"}}
	_, ts, err := w.client.PostMessage("C1", slack.MsgOptionText("hi", false), slack.MsgOptionMetadata(metadata))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.client.PostMessage("C1", slack.MsgOptionText("as Bob", false), slack.MsgOptionUsername("Bob")); err != nil {
		t.Fatal(err)
	}
	got := w.delivered(t)
	if want := []string{"message", "message.bot_message"}; !cmp.Equal(types(got), want) {
		t.Fatalf("got %v, want %v", types(got), want)
	}
	own, custom := got[0].inner, got[1].inner
	if own["ts"] != ts || own["bot_id"] != w.ws.Bot().BotID || own["app_id"] != "A0001" || own["user"] != w.ws.Bot().ID || own["metadata"] == nil {
		t.Errorf("got %v, want bot_id, app_id, user and metadata", own)
	}
	if custom["user"] != nil || custom["username"] != "Bob" || custom["bot_id"] != w.ws.Bot().BotID {
		t.Errorf("got %v, want a name and no user", custom)
	}
}

func TestEditsAndDeletions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakeslack.Options{})
	root := w.say(t, "root")
	reply, err := w.alice.Reply("C1", root, "reply")
	if err != nil {
		t.Fatal(err)
	}
	steps := []error{w.alice.Edit("C1", reply, "changed"), w.alice.Unfurl("C1", reply), w.alice.Delete("C1", root), w.alice.Delete("C1", reply)}
	for i, err := range steps {
		if err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
	got := w.delivered(t)
	if want := []string{"message", "message", "message.message_changed", "message.message_changed", "message.message_changed", "message.message_deleted"}; !cmp.Equal(types(got), want) {
		t.Fatalf("got %v, want %v", types(got), want)
	}
	edit, unfurl, tombstone, deleted := nested(got[2]), nested(got[3]), nested(got[4]), got[5].inner
	if edit["text"] != "changed" || edit["edited"] == nil || got[2].inner["hidden"] != true {
		t.Errorf("got %v, want a hidden edit", got[2].inner)
	}
	if before, _ := got[3].inner["previous_message"].(map[string]any); before["text"] != unfurl["text"] || !cmp.Equal(before["edited"], unfurl["edited"]) {
		t.Errorf("got %v, want no edit", got[3].inner)
	}
	if tombstone["subtype"] != "tombstone" || tombstone["ts"] != root {
		t.Errorf("got %v, want a tombstone for the root of a thread", tombstone)
	}
	if deleted["deleted_ts"] != reply {
		t.Errorf("got %v, want %s deleted", deleted, reply)
	}
	if err := w.alice.Edit("C1", root, "x"); err == nil {
		t.Error("got an edit of a deleted message, want an error")
	}
}

func nested(r received) map[string]any {
	m, _ := r.inner["message"].(map[string]any)
	return m
}

func TestRetries(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer func(n int, hold <-chan struct{}) int // status of the n-th request
		ack    time.Duration
		want   []string // reasons of the attempts
	}{
		"5xx twice": {func(n int, _ <-chan struct{}) int { return map[bool]int{true: 500, false: 200}[n < 2] }, time.Minute, []string{"http_error", "http_error", ""}},
		"never":     {func(int, <-chan struct{}) int { return 503 }, time.Minute, []string{"http_error", "http_error", "http_error", "http_error"}},
		"slow, then ok": {func(n int, hold <-chan struct{}) int {
			if n == 0 {
				<-hold
			}
			return 200
		}, 2 * time.Second, []string{"http_timeout", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, fakeslack.Options{AckTimeout: tt.ack})
			hold := make(chan struct{})
			t.Cleanup(func() { close(hold) })
			var n atomic.Int64
			w.app.answer = func(received) (int, string) { return tt.answer(int(n.Add(1))-1, hold), "" }
			w.say(t, "hello")
			got := w.delivered(t)
			var reasons, retries []string
			for _, a := range w.Deliveries()[0].Attempts {
				reasons = append(reasons, a.Reason)
			}
			for _, r := range got[1:] {
				retries = append(retries, r.header.Get("X-Slack-Retry-Reason"))
				if r.id != got[0].id || r.header.Get("X-Slack-Retry-Num") == "" {
					t.Errorf("got %s and %v, want the same event and its number", r.id, r.header)
				}
			}
			if !cmp.Equal(reasons, tt.want) || !cmp.Equal(retries, tt.want[:len(tt.want)-1]) {
				t.Errorf("got attempts %q and headers %q, want %q", reasons, retries, tt.want)
			}
		})
	}
}

// An app can say that it wants no retry.
func TestNoRetry(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakeslack.Options{})
	w.SetURLs(fakeslack.URLs{Events: headerServer(t, http.Header{"X-Slack-No-Retry": {"1"}}, 500)})
	w.say(t, "hello")
	w.delivered(t)
	if got := len(w.Deliveries()[0].Attempts); got != 1 {
		t.Errorf("got %d attempts, want 1", got)
	}
}

func TestEventFaults(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		faults fakeslack.EventFaults
		want   string
	}{
		"none":      {fakeslack.EventFaults{}, "one two three"},
		"duplicate": {fakeslack.EventFaults{Duplicate: true}, "one one two two three three"},
		"reverse":   {fakeslack.EventFaults{Reverse: 3}, "three two one"},
		"held":      {fakeslack.EventFaults{Reverse: 9}, "three two one"},
		"dead":      {fakeslack.EventFaults{Dead: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, fakeslack.Options{})
			w.DisturbEvents(tt.faults)
			for _, text := range strings.Fields("one two three") {
				w.say(t, text)
			}
			if name == "held" {
				w.DisturbEvents(tt.faults) // what is held back is let go
			}
			var got []string
			for _, r := range w.delivered(t) {
				text, _ := r.inner["text"].(string)
				got = append(got, text)
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// Events that do not wait for one another arrive together: neither is answered before the
// other is there.
func TestParallelEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakeslack.Options{})
	w.DisturbEvents(fakeslack.EventFaults{Parallel: true})
	var arrived sync.WaitGroup
	arrived.Add(2)
	w.app.answer = func(received) (int, string) {
		arrived.Done()
		arrived.Wait()
		return http.StatusOK, ""
	}
	w.say(t, w.ws.Bot().Mention()+" hello")
	got := types(w.delivered(t))
	slices.Sort(got)
	if want := []string{"app_mention", "message"}; !cmp.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Two workspaces with the same channel id do not mix.
func TestWorkspaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakeslack.Options{})
	other := w.AddWorkspace("other")
	other.AddChannel("C1", "general")
	bob := other.AddUser("Bob", "")
	if _, err := bob.Post("C1", "not installed here"); err != nil {
		t.Fatal(err)
	}
	other.Install()
	if _, err := bob.Post("C1", "hello"); err != nil {
		t.Fatal(err)
	}
	w.say(t, "hello")
	got := w.delivered(t)
	teams := []string{got[0].event.TeamID, got[1].event.TeamID}
	slices.Sort(teams)
	if want := []string{w.ws.ID, other.ID}; len(got) != 2 || !cmp.Equal(teams, want) {
		t.Errorf("got events of %v, want %v", teams, want)
	}
	if n := len(w.ws.Messages("C1")); n != 1 {
		t.Errorf("got %d messages, want 1", n)
	}
	other.Uninstall()
	last := types(w.delivered(t))
	if want := []string{"tokens_revoked", "app_uninstalled"}; !cmp.Equal(last[2:], want) {
		t.Errorf("got %v, want %v", last[2:], want)
	}
}
