package fakeslack_test

import (
	"context"
	"errors"
	"testing"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/slack-go/slack/socketmode"

	"bobbin/tests/slackfake/fakeslack"
)

// slack-go's client of Socket Mode gets events, commands and clicks, reconnects when it is
// told to, and gets what was sent meanwhile by a retry.
func TestSocketMode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakeslack.Options{})
	client := socketmode.New(slack.New(w.ws.Bot().Token(), slack.OptionAPIURL(w.APIURL()), slack.OptionAppLevelToken("xapp-1-A0001-1")))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- client.RunContext(ctx) }()
	texts := make(chan string, 10)
	go func() {
		for event := range client.Events {
			switch data := event.Data.(type) {
			case *slack.ConnectionErrorEvent:
				if ctx.Err() == nil {
					t.Errorf("connect: %v", data.ErrorObj)
				}
			case slackevents.EventsAPIEvent:
				if m, ok := data.InnerEvent.Data.(*slackevents.MessageEvent); ok {
					texts <- m.Text
				}
				_ = client.Ack(*event.Request)
			case slack.SlashCommand:
				_ = client.Ack(*event.Request, map[string]any{"text": "ran " + data.Command})
			}
		}
	}()
	open := func(n int) {
		t.Helper()
		if err := w.Wait(t.Context(), func() bool { return w.Sockets() == n }); err != nil {
			t.Fatal(err)
		}
	}
	open(1)
	w.say(t, "one")
	if got := <-texts; got != "one" {
		t.Errorf("got %q, want one", got)
	}
	if _, err := w.alice.Command("C1", "/context", ""); err != nil {
		t.Fatal(err)
	}
	if got := w.ws.Ephemerals(w.alice.ID); len(got) != 1 || got[0].Text != "ran /context" {
		t.Errorf("got %+v, want the payload of the ack", got)
	}
	w.Disconnect("refresh_requested")
	open(0)
	open(1)
	w.say(t, "two")
	if got := <-texts; got != "two" {
		t.Errorf("got %q, want two", got)
	}
	if err := w.WaitDelivered(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, d := range w.Deliveries() {
		if !d.Acknowledged() {
			t.Errorf("got %+v, want it acknowledged", d)
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was canceled", err)
	}
	open(0)
	if len(w.app.list()) != 0 {
		t.Error("got requests at the request URL, want everything over the socket")
	}
}
