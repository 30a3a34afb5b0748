package integration_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/tests/coretest"
	"bobbin/tests/llmtest"
)

// An agent that was removed while its runs were queued fails them, one after the
// other; nothing hangs, and the session works when there is an agent again.
func TestAgentIsRemoved(t *testing.T) {
	simulate(t, func(t *testing.T) {
		gate := llmtest.NewGate()
		s := newSettings(8192, llmtest.Scripted(llmtest.Step{Text: []string{"first answer"}, Gate: gate}, "last answer"))
		h := newHouse(t, coretest.New(), "w", s)
		all := []core.Run{h.send("one", ""), h.send("two", ""), h.send("three", "")}
		<-gate.Reached()
		agent := s.agents["assistant"]
		s.change(func() { delete(s.agents, "assistant") })
		gate.Open()
		synctest.Wait()
		h.want(all[0], core.RunSucceeded, "")
		for _, run := range all[1:] {
			if got := h.want(run, core.RunFailed, "not_found"); got.Error != nil && !strings.Contains(got.Error.Message, `"assistant"`) {
				t.Errorf("got %q, want the agent named", got.Error.Message)
			}
		}
		s.change(func() { s.agents["assistant"] = agent })
		last := h.send("four", "")
		synctest.Wait()
		h.want(last, core.RunSucceeded, "")
		want := []string{"user one", "assistant first answer", "user two", "user three", "user four", "assistant last answer"}
		if diff := cmp.Diff(want, h.log()); diff != "" {
			t.Errorf("log (-want +got):\n%s", diff)
		}
	})
}

// A run is done by the agent that it was accepted for, which its row and the books
// name, also when the session was given another one while it waited.
func TestAgentIsChangedWhileRunsWait(t *testing.T) {
	simulate(t, func(t *testing.T) {
		gate := llmtest.NewGate()
		model := llmtest.Scripted(llmtest.Step{Text: []string{"one"}, Gate: gate}, "two", "three")
		s := newSettings(8192, model)
		other := s.agents["assistant"]
		other.Name, other.SystemPrompt = "other", "You are the other one."
		s.agents["other"] = other
		h := newHouse(t, coretest.New(), "w", s)
		h.send("one", "")
		h.send("two", "")
		<-gate.Reached()
		h.patch(core.SessionPatch{Agent: new("other")})
		h.send("three", "")
		gate.Open()
		synctest.Wait()
		for i, r := range model.Requests() {
			if got, want := strings.Contains(r.System[0], "the other one"), i == 2; got != want {
				t.Errorf("call %d: got the other agent's prompt %v, want %v", i+1, got, want)
			}
		}
	})
}

// patch changes the session.
func (h *house) patch(p core.SessionPatch) {
	h.t.Helper()
	if _, _, err := h.db.Sessions.Update(h.t.Context(), core.Tenant{Owner: "ann"}, h.session.ID, p); err != nil {
		h.t.Fatal(err)
	}
}
