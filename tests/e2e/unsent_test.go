package e2e_test

import (
	"strings"
	"testing"

	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
)

// A user takes back a message before its turn and deletes it: its text and its file are
// nowhere any more, while the run before it still works.
func TestDeleteAMessageBeforeItsTurn(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		const secret = "Rosebud"
		begun, release := make(chan struct{}, 1), make(chan struct{})
		p := apptest.NewProvider(t, provider.Options{Window: 8192, Hold: func(string) {
			begun <- struct{}{}
			<-release
		}})
		h := apptest.New(t, url, apptest.WithModel("house", 8192, 2048, p))
		id, ctx := apptest.NewSession(t, h.Client, core.Session{}), t.Context()
		working, err := h.SendAsync(ctx, core.SendMessage{SessionID: id, Content: "take your time"})
		if err != nil {
			t.Fatal(err)
		}
		<-begun
		file := upload(t, h.Client, "secret.txt", []byte("the file about "+secret))
		queued, err := h.SendAsync(ctx, core.SendMessage{SessionID: id, Content: "it is " + secret, Parts: []core.Part{file}})
		if err != nil || queued.Status != core.RunQueued {
			t.Fatalf("got %+v, %v, want it queued", queued, err)
		}
		if _, err := h.CancelRun(ctx, queued.ID, true); err != nil {
			t.Fatal(err)
		}
		for range 2 { // may be repeated
			if err := h.DeleteMessage(ctx, id, queued.UserMessageID); err != nil {
				t.Fatalf("delete: %v", err)
			}
		}
		run, err := h.Run(ctx, queued.ID)
		if err != nil || run.Status != core.RunCanceled || run.Input.Content != "" || len(run.Input.Parts) != 0 || run.Input.DeletedAt == nil {
			t.Errorf("run: got %+v, %v, want it without its message", run.Input, err)
		}
		close(release)
		for _, err := range h.WatchRun(ctx, working.ID, core.Cursor{}) {
			if err != nil {
				t.Fatal(err)
			}
		}
		wantForgotten(t, h.Client, id, queued, secret)
	})
}

// wantForgotten checks that no event has the secret, and that the message is told as
// deleted where it was told of.
func wantForgotten(t *testing.T, c *client.Client, id core.SessionID, queued core.Run, secret string) {
	t.Helper()
	told := 0
	for _, e := range replay(t, c, id) {
		if strings.Contains(dataText(t, e), secret) {
			t.Errorf("%s has it: %+v", e.Type, e.Data)
		}
		if e.RunID == queued.ID && (e.Type == core.EventRunQueued || e.Type == core.EventMessageUpdated) {
			if m := apptest.EventData[core.MessageData](t, e).Message; m.ID != queued.UserMessageID || m.DeletedAt == nil {
				t.Errorf("%s: got %+v, want the message deleted", e.Type, m)
			}
			told++
		}
	}
	if told != 2 {
		t.Errorf("told of it in %d events, want run.queued and message.updated", told)
	}
}
