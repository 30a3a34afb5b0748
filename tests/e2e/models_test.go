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
	"bobbin/tests/provider"
)

// A caller chooses among the models of the settings and of the agents: no field takes
// the name of another provider's model, and no answer says which keys the server lacks.
func TestCallersChooseConfiguredModels(t *testing.T) {
	t.Parallel()
	p := apptest.NewProvider(t, provider.Options{})
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 32_000, 2048, p), apptest.WithModel("spare", 32_000, 2048, p), apptest.WithModel("other", 32_000, 2048, p), withFallback(t, "[spare]"))
	id := apptest.NewSession(t, h.Client, ops.NewSession{Model: "other"})
	apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "hello", Model: "spare"})
	log := apptest.ListMessages(t, h.Client, id)
	for _, name := range []string{"ollama/whatever", "openai/o1-pro", "gpt-4o-mini", "openai/../../../x?y", "demo"} {
		calls := map[string]func() error{
			"session": func() error {
				_, err := client.Call(t.Context(), h, ops.CreateSession, ops.NewSession{Model: name})
				return err
			},
			"patch": func() error {
				_, err := client.Call(t.Context(), h, ops.UpdateSession, ops.SessionPatch{InSession: ops.InSession{SessionID: id}, SessionPatch: core.SessionPatch{Model: &name}})
				return err
			},
			"message": func() error {
				_, err := h.SendAsync(t.Context(), core.SendMessage{SessionID: id, Content: "x", Model: name})
				return err
			},
			"regenerate": func() error {
				_, err := client.Call(t.Context(), h, ops.RegenerateMessage, ops.Regenerate{InMessage: apptest.InMessage(id, log[len(log)-1].ID), Model: name})
				return err
			},
			"dry run": func() error {
				_, err := client.Call(t.Context(), h, ops.PlanContext, ops.Plan{InSession: ops.InSession{SessionID: id}, PlanPreview: core.PlanPreview{Model: name}})
				return err
			},
		}
		for field, call := range calls {
			err := call()
			wantProblem(t, err, core.ErrInvalid, http.StatusUnprocessableEntity, "is not a model of this server; the models are house, other, spare")
			if err != nil && strings.Contains(err.Error(), "_KEY") {
				t.Errorf("%s: %v names a key", field, err)
			}
		}
	}
}
