package e2e_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
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
	id := apptest.NewSession(t, h.Client, core.Session{Model: "other"})
	apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "hello", Model: "spare"})
	log := apptest.ListMessages(t, h.Client, id)
	for _, name := range []string{"ollama/whatever", "openai/o1-pro", "gpt-4o-mini", "openai/../../../x?y", "demo"} {
		calls := map[string]func() error{
			"session": func() error { _, err := h.CreateSession(t.Context(), core.Session{Model: name}); return err },
			"patch": func() error {
				_, err := h.UpdateSession(t.Context(), id, core.SessionPatch{Model: &name})
				return err
			},
			"message": func() error {
				_, err := h.SendAsync(t.Context(), core.SendMessage{SessionID: id, Content: "x", Model: name})
				return err
			},
			"regenerate": func() error {
				_, err := h.RegenerateAndWait(t.Context(), core.Regenerate{SessionID: id, MessageID: log[len(log)-1].ID, Model: name})
				return err
			},
			"dry run": func() error { _, err := h.DryRun(t.Context(), id, core.PlanPreview{Model: name}); return err },
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

// While a limit in US dollars holds for a caller, a model without a price is refused,
// also as a fallback, and the start says which models these are.
func TestDollarLimitsRefuseModelsWithoutPrice(t *testing.T) {
	t.Parallel()
	p := apptest.NewProvider(t, provider.Options{})
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 32_000, 2048, p), apptest.WithModel("free", 32_000, 2048, p), twoOwners, withFallback(t, "[free]"), func(c *config.Config) {
		c.Models[0].InputPrice, c.Models[0].OutputPrice = 2, 8
		c.Auth.Limits = []config.SpendLimit{{Key: "alice", USDPerDay: 1000}, {Key: "bob", TokensPerDay: 1_000_000}}
	})
	alice, bob := h.NewClient("alice's secret"), h.NewClient("bob's secret")
	id := apptest.NewSession(t, alice, core.Session{})
	apptest.SendMessage(t, alice, core.SendMessage{SessionID: id, Content: "hello"})
	_, err := alice.SendAsync(t.Context(), core.SendMessage{SessionID: id, Content: "hello", Model: "free"})
	wantProblem(t, err, core.ErrInvalid, http.StatusUnprocessableEntity, `the model "free" has no price`)
	var problem *client.ProblemError
	if !errors.As(err, &problem) || problem.Code != core.CodeModelUnpriced {
		t.Errorf("got %+v, want the code %s", problem, core.CodeModelUnpriced)
	}
	apptest.SendMessage(t, bob, core.SendMessage{SessionID: apptest.NewSession(t, bob, core.Session{}), Content: "hello", Model: "free"})
	if log := h.Log.String(); !strings.Contains(log, "refused to keys with usd_per_day") || !strings.Contains(log, "model=free keys=[alice]") || strings.Contains(log, "model=house") {
		t.Errorf("the start does not warn of free alone: %s", log)
	}
}
