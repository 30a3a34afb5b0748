package fakeslack_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"

	"bobbin/tests/slackfake/fakeslack"
)

// redirectServer takes the codes of installations.
func redirectServer(t *testing.T, codes chan<- string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.FormValue("state") != "s1" {
			t.Errorf("got the state %q, want s1", r.FormValue("state"))
		}
		codes <- r.FormValue("code")
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// interaction reads the interaction of a request with slack-go.
func (r received) interaction(t *testing.T) slack.InteractionCallback {
	t.Helper()
	var got slack.InteractionCallback
	if err := json.Unmarshal([]byte(r.form.Get("payload")), &got); err != nil {
		t.Fatal(err)
	}
	return got
}

// answerAt answers at a response_url.
func answerAt(t *testing.T, address, body string) int {
	t.Helper()
	response, err := http.Post(address, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

func TestClick(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakeslack.Options{})
	label := func(text string) *slack.TextBlockObject {
		return slack.NewTextBlockObject("plain_text", text, false, false)
	}
	buttons := slack.NewActionBlock("approval", slack.NewButtonBlockElement("approve", "id-1", label("Approve")), slack.NewButtonBlockElement("deny", "id-1", label("Deny")))
	feedback := slack.NewContextActionsBlock("", slack.NewFeedbackButtonsBlockElement("feedback", slack.NewFeedbackButton(label("Good"), "good"), slack.NewFeedbackButton(label("Bad"), "bad")))
	_, ts, err := w.client.PostMessage("C1", slack.MsgOptionText("may I?", false), slack.MsgOptionBlocks(buttons, feedback))
	if err != nil {
		t.Fatal(err)
	}
	w.delivered(t)
	if _, err := w.alice.Click("C1", ts, "nothing", ""); err == nil {
		t.Error("got a click on a button that is not there, want an error")
	}
	for _, tt := range []struct{ action, value, block string }{{"deny", "id-1", "approval"}, {"feedback", "bad", "block-1"}} {
		if _, err := w.alice.Click("C1", ts, tt.action, tt.value); err != nil {
			t.Fatal(err)
		}
		list := w.app.list()
		got := list[len(list)-1].interaction(t)
		action := got.ActionCallback.BlockActions[0]
		if got.Type != slack.InteractionTypeBlockActions || action.ActionID != tt.action || action.Value != tt.value || action.BlockID != tt.block || got.User.ID != w.alice.ID ||
			got.Message.Timestamp != ts || got.Container.MessageTs != ts || got.Channel.ID != "C1" || got.Team.ID != w.ws.ID || got.APIAppID != "A0001" {
			t.Errorf("got %+v, want the click on %s", got, tt.action)
		}
	}
	list := w.app.list()
	address := list[len(list)-1].interaction(t).ResponseURL
	if status := answerAt(t, address, `{"replace_original":true,"text":"denied"}`); status != http.StatusOK {
		t.Errorf("got %d, want 200", status)
	}
	if got := w.ws.Posts("C1")[0]; got.Text != "denied" || len(got.Blocks) > 0 {
		t.Errorf("got %+v, want the message without buttons", got)
	}
	if _, err := w.alice.Click("C1", ts, "deny", ""); err == nil {
		t.Error("got a click on a button that is gone, want an error")
	}
}

// A response_url works five times, for half an hour.
func TestResponseURL(t *testing.T) {
	t.Parallel()
	c := newClock()
	w := newWorld(t, fakeslack.Options{Now: c.read})
	w.app.answer = func(received) (int, string) { return http.StatusOK, `{"response_type":"ephemeral","text":"a list"}` }
	answer, err := w.alice.Command("C1", "/context", "now")
	if err != nil || answer.Status != http.StatusOK {
		t.Fatalf("got %+v and %v, want 200", answer, err)
	}
	if got := w.ws.Ephemerals(w.alice.ID); len(got) != 1 || got[0].Text != "a list" {
		t.Errorf("got %+v, want the answer for Alice alone", got)
	}
	form := w.app.list()[0].form
	if form.Get("command") != "/context" || form.Get("text") != "now" || form.Get("channel_id") != "C1" || form.Get("user_id") != w.alice.ID || form.Get("team_id") != w.ws.ID || form.Get("trigger_id") == "" {
		t.Errorf("got %v, want Alice's command", form)
	}
	address := form.Get("response_url")
	if status := answerAt(t, address, `{"markdown_text":"x"}`); status != http.StatusNotFound {
		t.Errorf("got %d, want that markdown is not accepted", status)
	}
	for i := range 4 {
		if status := answerAt(t, address, `{"response_type":"in_channel","text":"x"}`); status != http.StatusOK {
			t.Errorf("answer %d: got %d, want 200", i, status)
		}
	}
	if status := answerAt(t, address, `{"text":"x"}`); status != http.StatusNotFound || len(w.ws.Posts("C1")) != 4 {
		t.Errorf("got %d and %d posts, want 404 and 4", status, len(w.ws.Posts("C1")))
	}
	if _, err := w.alice.Command("C1", "/context", ""); err != nil {
		t.Fatal(err)
	}
	c.advance(31 * time.Minute)
	var second string
	for _, r := range w.app.list() {
		if r.form != nil {
			second = r.form.Get("response_url")
		}
	}
	if status := answerAt(t, second, `{"text":"x"}`); status != http.StatusNotFound || second == address {
		t.Errorf("got %d, want 404 after half an hour", status)
	}
	// An app that is slow has failed in the user's eyes.
	w.app.answer = func(received) (int, string) { return http.StatusInternalServerError, "" }
	if _, err := w.alice.Command("C1", "/context", ""); err == nil {
		t.Error("got no error, want that the command failed")
	}
}

func TestShortcutAndView(t *testing.T) {
	t.Parallel()
	c := newClock()
	w := newWorld(t, fakeslack.Options{Now: c.read})
	ts := w.say(t, "hello")
	w.delivered(t)
	trigger := func() string {
		if _, err := w.alice.Shortcut("C1", ts, "show_context"); err != nil {
			t.Fatal(err)
		}
		list := w.app.list()
		got := list[len(list)-1].interaction(t)
		if got.Type != slack.InteractionTypeMessageAction || got.CallbackID != "show_context" || got.Message.Timestamp != ts {
			t.Errorf("got %+v, want the shortcut", got)
		}
		return got.TriggerID
	}
	view := slack.ModalViewRequest{Type: slack.VTModal, Title: slack.NewTextBlockObject("plain_text", "Details", false, false)}
	id := trigger()
	if _, err := w.client.OpenView(id, view); err != nil {
		t.Error(err)
	}
	if _, err := w.client.OpenView(id, view); errorOf(err) != "invalid_trigger_id" {
		t.Errorf("got %v, want that a trigger works once", err)
	}
	id = trigger()
	c.advance(4 * time.Second)
	if _, err := w.client.OpenView(id, view); errorOf(err) != "expired_trigger_id" {
		t.Errorf("got %v, want that a trigger lives for 3 seconds", err)
	}
	if got := w.alice.Views(); len(got) != 1 || !strings.Contains(string(got[0].JSON), "Details") {
		t.Errorf("got %+v, want one view", got)
	}
}

// An ephemeral message has buttons, too; it goes through its response_url.
func TestEphemeralButton(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakeslack.Options{})
	button := slack.NewActionBlock("", slack.NewButtonBlockElement("go", "v", slack.NewTextBlockObject("plain_text", "Go", false, false)))
	ts, err := w.client.PostEphemeral("C1", w.alice.ID, slack.MsgOptionText("only you", false), slack.MsgOptionBlocks(button))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.alice.Click("C1", ts, "go", ""); err != nil {
		t.Fatal(err)
	}
	got := w.app.list()[0].interaction(t)
	if !got.Container.IsEphemeral {
		t.Errorf("got %+v, want an ephemeral container", got.Container)
	}
	if status := answerAt(t, got.ResponseURL, `{"delete_original":true}`); status != http.StatusOK || len(w.ws.Ephemerals(w.alice.ID)) != 0 {
		t.Errorf("got %d and %v, want nothing left", status, w.ws.Ephemerals(w.alice.ID))
	}
}
