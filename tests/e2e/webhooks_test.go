package e2e_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// hookKey signs the webhooks of these tests.
const hookKey = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// hooked is what a receiver of webhooks was told once.
type hooked struct {
	id, signature, wanted string // wanted is the signature by the words of Standard Webhooks
	kind                  core.EventType
	run                   core.Run
	answer                string
}

// hookServer is a program that is told how runs end. It answers with the codes in
// turn, then with 200; the code 0 is no answer until the sender goes away.
func hookServer(t *testing.T, codes ...int) (url string, told <-chan hooked) {
	t.Helper()
	seen, next := make(chan hooked, 100), make(chan int, len(codes))
	for _, c := range codes {
		next <- c
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var report struct {
			Type core.EventType
			Data struct {
				Run     core.Run
				Message *core.Message
			}
		}
		if err != nil || json.Unmarshal(body, &report) != nil || strings.Contains(string(body), hookKey) || strings.Contains(string(body), "hush") {
			t.Errorf("body: %v, %s", err, body)
		}
		key, _ := base64.StdEncoding.DecodeString(hookKey)
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(r.Header.Get("webhook-id") + "." + r.Header.Get("webhook-timestamp") + "." + string(body)))
		got := hooked{
			id: r.Header.Get("webhook-id"), signature: r.Header.Get("webhook-signature"), kind: report.Type, run: report.Data.Run,
			wanted: "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)),
		}
		if report.Data.Message != nil {
			got.answer = report.Data.Message.Content
		}
		seen <- got
		select {
		case code := <-next:
			if code == 0 {
				<-r.Context().Done()
				return
			}
			w.WriteHeader(code)
		default:
		}
	}))
	t.Cleanup(server.Close)
	return server.URL + "/hook?token=hush", seen
}

// delivered waits until a delivery of the session has come to its end, and returns
// those of the run.
func delivered(t *testing.T, c *client.Client, session core.SessionID, run core.RunID) []core.Delivery {
	t.Helper()
	for e, err := range c.WatchSession(t.Context(), session, core.Cursor{}) {
		must.Do(t, err)
		if e.Type == core.EventDeliveryUpdated && e.RunID == run && apptest.EventData[core.DeliveryData](t, e).State != core.DeliveryPending {
			break
		}
	}
	return must.Get(client.Call(t.Context(), c, ops.ListDeliveries, ops.InRun{RunID: run}))(t).Items
}

// An owner's webhook is told of runs whose message and session have none, in sessions that were there before, and
// no longer when it is removed. A session's webhook takes its place, and is told of an answer, signed, again with
// the same id until the receiver takes it; a message's webhook takes that one's place; a person may ask again.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		h := apptest.New(t, url, func(c *config.Config) { c.Webhooks.AllowPrivate = true })
		plain := apptest.NewSession(t, h.Client, ops.NewSession{})
		compare.Equal(t, "before", http.StatusNotFound, status(compare.ErrorOf(client.Call(t.Context(), h, ops.GetWebhook, struct{}{}))))
		at, byDefault := hookServer(t)
		for range 2 { // may be repeated
			hook, err := client.Call(t.Context(), h, ops.PutWebhook, ops.NewWebhook{URL: at, Secret: "whsec_" + hookKey})
			if err != nil || hook.Secret != "" {
				t.Fatalf("got %+v, %v, want the webhook without its secret", hook, err)
			}
		}
		asked := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: plain, Content: "What is 17 * 23?"})
		if got := <-byDefault; got.run.ID != asked.Run.ID || got.signature == "" || got.signature != got.wanted {
			t.Errorf("told: %+v, want run %s, signed", got, asked.Run.ID)
		}

		at, told := hookServer(t, http.StatusInternalServerError)
		id := apptest.NewSession(t, h.Client, ops.NewSession{Webhook: &ops.NewWebhook{URL: at, Secret: "whsec_" + hookKey}})
		asked = apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "What is 17 * 23?"})
		first, second := <-told, <-told
		for _, got := range []hooked{first, second} {
			if got.id != first.id || got.signature != got.wanted || got.kind != core.EventRunSucceeded || got.run.ID != asked.Run.ID || got.answer != asked.Answer.Content {
				t.Errorf("told: %+v, want the answer %q of run %s", got, asked.Answer.Content, asked.Run.ID)
			}
		}
		list := delivered(t, h.Client, id, asked.Run.ID)
		if len(list) != 1 || list[0].State != core.DeliveryDelivered || list[0].Attempt != 2 || string(list[0].ID) != first.id || strings.Contains(string(list[0].Target), "hush") {
			t.Errorf("deliveries: %+v, want one, delivered at the second try", list)
		}
		must.Get(client.Call(t.Context(), h, ops.RetryDelivery, ops.InDelivery{InRun: ops.InRun{RunID: asked.Run.ID}, DeliveryID: list[0].ID}))(t)
		compare.Equal(t, "asked again", first.id, (<-told).id)
		elsewhere, others := hookServer(t)
		own := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "And 19 * 23?", Webhook: &core.Webhook{URL: core.Target(elsewhere)}})
		if got := <-others; got.run.ID != own.Run.ID || got.signature != "" {
			t.Errorf("the message's own: %+v, want run %s, not signed", got, own.Run.ID)
		}
		compare.Equal(t, "what the session's and the default one were told, too", 0, len(told)+len(byDefault))

		must.Get(client.Call(t.Context(), h, ops.DeleteWebhook, struct{}{}))(t)
		asked = apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: plain, Content: "And 23 * 23?"})
		compare.Equal(t, "deliveries without a webhook", 0, len(must.Get(client.Call(t.Context(), h, ops.ListDeliveries, ops.InRun{RunID: asked.Run.ID}))(t).Items))
		strict := apptest.New(t, "sqlite://"+t.TempDir()+"/strict.db")
		_, err := client.Call(t.Context(), strict, ops.PutWebhook, ops.NewWebhook{URL: "http://example.com/hook"})
		if status(err) != http.StatusUnprocessableEntity || !strings.Contains(err.Error(), "webhooks.allow_private") {
			t.Errorf("http: got %v, want a refusal that names the setting", err)
		}
	})
}
