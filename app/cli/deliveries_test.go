package cli_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"bobbin/app/client"
	"bobbin/app/core"
	place "bobbin/app/core/datadir"
)

// An operator sees what did not arrive, whoever's it is, and has it made again; that is
// in the audit log, and so is what a server found changed at its start.
func TestDeliveries(t *testing.T) {
	t.Parallel()
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) }))
	t.Cleanup(receiver.Close)
	flags := folder(t)
	do := func(wantCode int, args ...string) string {
		t.Helper()
		code, out, errs := run(t, "", append(args, flags...)...)
		if code != wantCode {
			t.Fatalf("%q: got %d, %q, %q; want %d", args, code, out, errs, wantCode)
		}
		return out + errs
	}
	if out := do(0, "deliveries", "list"); !strings.Contains(out, "no deliveries found") {
		t.Errorf("before the first one: %q", out)
	}
	serve(t, flags)()
	serve(t, flags)() // nothing has changed
	stop := serve(t, append(slices.Clone(flags), "--limits-queued-runs", "7", "--webhooks-allow-private", "true"))
	s, ok := place.Running(flags[slices.Index(flags, "--data-dir")+1])
	if !ok {
		t.Fatal("no server runs")
	}
	c, err := client.New(client.Options{URL: s.URL, Key: s.Token})
	if err != nil {
		t.Fatal(err)
	}
	session, err := c.CreateSession(t.Context(), core.Session{Webhook: &core.Webhook{URL: core.Target(receiver.URL + "/hook?token=hush")}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.SendAndWait(t.Context(), core.SendMessage{SessionID: session.ID, Content: "hello"}); err != nil {
		t.Fatal(err)
	}
	for e, err := range c.WatchSession(t.Context(), session.ID, core.Cursor{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == core.EventDeliveryUpdated {
			break
		}
	}
	stop()
	out := do(0, "deliveries", "list", "--state", "failed")
	id := regexp.MustCompile(`(?m)^[0-9a-f-]{36}`).FindString(out)
	if id == "" || !strings.Contains(out, "410 Gone") || !strings.Contains(out, receiver.URL+"/hook") || strings.Contains(out, "hush") {
		t.Errorf("got %q, want the one that failed, and no secret", out)
	}
	if out := do(0, "deliveries", "list", "--state", "delivered", "--json"); fields(t, out)["items"] == nil || strings.Contains(out, id) {
		t.Errorf("those that have arrived: %q", out)
	}
	if out := do(0, "deliveries", "retry", id); !strings.Contains(out, id+" will be retried") {
		t.Errorf("retry: %q", out)
	}
	if out := do(0, "deliveries", "list", "--state", "pending"); !strings.Contains(out, id) {
		t.Errorf("after it: %q", out)
	}
	for args, says := range map[string]string{
		"deliveries retry": "no delivery given", "deliveries list --state lost": "--state must be", "deliveries retry 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243": "does not exist",
	} {
		if out := do(1, strings.Fields(args)...); !strings.Contains(out, says) {
			t.Errorf("%s: got %q, want %q", args, out, says)
		}
	}
	out = do(0, "audit")
	if strings.Count(out, "config.changed") != 2 || !strings.Contains(out, `limits.queued_runs: "7", was ""`) || !strings.Contains(out, "delivery.retried") {
		t.Errorf("audit: got %q, want two starts and the retry", out)
	}
}
