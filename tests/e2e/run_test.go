package e2e_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/api/ops"
	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
)

// What a provider refuses is told in words that help and give nothing away, the
// message stays, and the next one is answered.
func TestProviderRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		status int
		body   string
		code   string
	}{
		{"wrong key", 401, `{"error":{"message":"Incorrect API key provided: sk-secret","code":"invalid_api_key"}}`, "model_auth"},
		{"bad request", 400, `{"error":{"message":"no such parameter","type":"invalid_request_error"}}`, "model_invalid"},
		{"not found", 404, `{"error":{"message":"no such model","code":"model_not_found"}}`, "model_not_found"},
		{"web page", 403, `<html>blocked by secret-proxy.internal</html>`, "model_auth"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := apptest.NewProvider(t, provider.Options{Window: 8192, Fault: func(w http.ResponseWriter, a provider.Asked) bool {
				if !strings.HasSuffix(a.Question, "refuse me") {
					return false
				}
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
				return true
			}})
			h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 8192, 2048, p))
			id := apptest.NewSession(t, h.Client, ops.NewSession{})
			got := apptest.ReadTurn(t, h.Send(t.Context(), core.SendMessage{SessionID: id, Content: "refuse me"}))
			e := got.Run.Error
			if got.Run.Status != core.RunFailed || e == nil || e.Code != c.code || strings.Contains(e.Message, "secret") {
				t.Errorf("got the run %s with %+v, want %s without a secret", got.Run.Status, e, c.code)
			}
			apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "again"})
			if diff := cmp.Diff([]string{"refuse me", "again"}, log(apptest.ListMessages(t, h.Client, id), core.RoleUser)); diff != "" {
				t.Errorf("questions in the log (-want +got):\n%s", diff)
			}
		})
	}
}
