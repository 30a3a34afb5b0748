package client_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/tests/apitest"
)

// Webhooks are sent with their secrets, and what comes back has none.
func TestDeliveryRoundTrips(t *testing.T) {
	t.Parallel()
	backend := apitest.New()
	c := dial(t, backend, "s3cret")
	hook := &core.Webhook{URL: "https://example.com/hook?token=t", Secret: "whsec_s"}
	session, err := c.CreateSession(t.Context(), core.Session{Webhook: hook})
	if err != nil || session.Webhook == nil || session.Webhook.URL != "https://example.com/hook?***" || session.Webhook.Secret != "" {
		t.Errorf("session: %+v, %v", session.Webhook, err)
	}
	if _, err := c.UpdateSession(t.Context(), apitest.SessionID, core.SessionPatch{Webhook: &core.Webhook{}}); err != nil {
		t.Error(err)
	}
	if _, err := c.SendAsync(t.Context(), core.SendMessage{SessionID: apitest.SessionID, Content: "Hi", Webhook: hook}); err != nil {
		t.Error(err)
	}
	calls := backend.Calls()
	for i, got := range []*core.Webhook{calls[0].Args[0].(core.Session).Webhook, calls[2].Args[0].(core.SendMessage).Webhook} {
		if diff := cmp.Diff(hook, got); diff != "" {
			t.Errorf("webhook %d (-want +got):\n%s", i, diff)
		}
	}
	if got := calls[1].Args[1].(core.SessionPatch).Webhook; got == nil || *got != (core.Webhook{}) {
		t.Errorf("taken away: got %+v, want an empty one", got)
	}
	list, err := c.Deliveries(t.Context(), apitest.RunID)
	if err != nil || len(list) != 1 || list[0].ID != apitest.DeliveryID || list[0].Target != "https://example.com/hook?***" || list[0].Secret != "" {
		t.Errorf("deliveries: %+v, %v", list, err)
	}
	again, err := c.RetryDelivery(t.Context(), apitest.RunID, apitest.DeliveryID)
	if err != nil || again.State != core.DeliveryPending {
		t.Errorf("retry: %+v, %v", again, err)
	}
}
