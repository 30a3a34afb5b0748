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

// A session is not changed to a model that cannot hold the system prompt, the tools and
// the pinned messages, unless somebody insists; a conversation that is merely long can
// be summarized for it.
func TestSwitchToAModelThatIsTooSmall(t *testing.T) {
	t.Parallel()
	p := apptest.NewProvider(t, provider.Options{})
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("large", 32_000, 2048, p), apptest.WithModel("nano", 2048, 256, p),
		apptest.WithAgent("wordy", "name: wordy\nsystem_prompt: "+strings.Repeat("You never forget a rule. ", 400)+"\n"),
		apptest.WithAgent("nanny", "name: nanny\nmodel: nano\nsystem_prompt: "+strings.Repeat("You never forget a rule. ", 400)+"\n"))
	wordy := apptest.NewSession(t, h.Client, ops.NewSession{Agent: "wordy"})
	apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: wordy, Content: "hello"})

	nano, large, title := "nano", "large", "still here"
	_, err := client.Call(t.Context(), h, ops.UpdateSession, ops.SessionPatch{InSession: ops.InSession{SessionID: wordy}, SessionPatch: core.SessionPatch{Model: &nano, Title: &title}})
	wantProblem(t, err, core.ErrContextFloor, http.StatusUnprocessableEntity, "the largest part is the system prompt")
	wantProblem(t, err, core.ErrContextFloor, http.StatusUnprocessableEntity, `"force": true`)
	plan, err := client.Call(t.Context(), h, ops.PlanContext, ops.Plan{InSession: ops.InSession{SessionID: wordy}, PlanPreview: core.PlanPreview{Model: nano}})
	if err != nil || plan.Fits || session(t, h.Client, wordy).Model != "" || session(t, h.Client, wordy).Title == title {
		t.Errorf("got the dry run %+v, %v and the session %+v, want it as it was", plan.Floor, err, session(t, h.Client, wordy))
	}
	if s, err := client.Call(t.Context(), h, ops.UpdateSession, ops.SessionPatch{InSession: ops.InSession{SessionID: wordy}, SessionPatch: core.SessionPatch{Model: &nano, Force: true}}); err != nil || s.Model != nano {
		t.Fatalf("by force: got %+v, %v, want the model changed", s, err)
	}
	if _, err := client.Call(t.Context(), h, ops.UpdateSession, ops.SessionPatch{InSession: ops.InSession{SessionID: wordy}, SessionPatch: core.SessionPatch{Model: &nano, Title: &title}}); err != nil {
		t.Errorf("the same model again: got %v, want no check", err)
	}
	if got := apptest.ReadTurn(t, h.Send(t.Context(), core.SendMessage{SessionID: wordy, Content: "and now?"})); got.Run.Error == nil || got.Run.Error.Code != "context_floor" {
		t.Errorf("got the run's error %+v, want that nothing can be sent", got.Run.Error)
	}
	if _, err := client.Call(t.Context(), h, ops.UpdateSession, ops.SessionPatch{InSession: ops.InSession{SessionID: wordy}, SessionPatch: core.SessionPatch{Model: &large}}); err != nil {
		t.Errorf("back to a large model: %v", err)
	}

	nanny, none := apptest.NewSession(t, h.Client, ops.NewSession{Agent: "nanny", Model: large}), ""
	_, err = client.Call(t.Context(), h, ops.UpdateSession, ops.SessionPatch{InSession: ops.InSession{SessionID: nanny}, SessionPatch: core.SessionPatch{Model: &none}})
	wantProblem(t, err, core.ErrContextFloor, http.StatusUnprocessableEntity, "the largest part is the system prompt")

	long := apptest.NewSession(t, h.Client, ops.NewSession{})
	bringIn(t, h.Client, long, core.ImportLines, history(200))
	if _, err := client.Call(t.Context(), h, ops.UpdateSession, ops.SessionPatch{InSession: ops.InSession{SessionID: long}, SessionPatch: core.SessionPatch{Model: &nano}}); err != nil {
		t.Errorf("a long conversation: got %v, want the model changed", err)
	}
	_, err = client.Call(t.Context(), h, ops.UpdateSession, ops.SessionPatch{InSession: ops.InSession{SessionID: core.NewID[core.SessionID]()}, SessionPatch: core.SessionPatch{Model: &nano}})
	wantProblem(t, err, core.ErrNotFound, http.StatusNotFound, "does not exist")
}
