package e2e_test

import (
	"net/http"
	"strings"
	"testing"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// An owner's webhook is told of runs whose message and session have none, in sessions that
// were there before, and no longer when it is removed.
func TestDefaultWebhook(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		h := apptest.New(t, url, withWebhooks)
		id := apptest.NewSession(t, h.Client, ops.NewSession{})
		if _, err := client.Call(t.Context(), h, ops.GetWebhook, struct{}{}); status(err) != http.StatusNotFound {
			t.Errorf("before: got %v, want 404", err)
		}
		at, told := hookServer(t)
		for range 2 { // may be repeated
			hook, err := client.Call(t.Context(), h, ops.PutWebhook, ops.NewWebhook{URL: at, Secret: "whsec_" + hookKey})
			if err != nil || hook.Secret != "" {
				t.Fatalf("got %+v, %v, want the webhook without its secret", hook, err)
			}
		}
		asked := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "What is 17 * 23?"})
		if got := <-told; got.run.ID != asked.Run.ID || got.signature == "" || got.signature != got.wanted {
			t.Errorf("told: %+v, want run %s, signed", got, asked.Run.ID)
		}
		elsewhere, others := hookServer(t)
		own := apptest.NewSession(t, h.Client, ops.NewSession{Webhook: &ops.NewWebhook{URL: elsewhere}})
		asked = apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: own, Content: "And 19 * 23?"})
		if got := <-others; got.run.ID != asked.Run.ID || len(told) != 0 {
			t.Errorf("the session's own: %+v, want run %s, and the default one not told", got, asked.Run.ID)
		}
		must.Get(client.Call(t.Context(), h, ops.DeleteWebhook, struct{}{}))(t)
		asked = apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "And 23 * 23?"})
		if list, err := client.Call(t.Context(), h, ops.ListDeliveries, ops.InRun{RunID: asked.Run.ID}); err != nil || len(list.Items) != 0 {
			t.Errorf("removed: got deliveries %+v, %v, want none", list, err)
		}

		strict := apptest.New(t, "sqlite://"+t.TempDir()+"/strict.db")
		_, err := client.Call(t.Context(), strict, ops.PutWebhook, ops.NewWebhook{URL: "http://example.com/hook"})
		if status(err) != http.StatusUnprocessableEntity || !strings.Contains(err.Error(), "webhooks.allow_private") {
			t.Errorf("http: got %v, want a refusal that names the setting", err)
		}
	})
}
