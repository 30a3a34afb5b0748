package nodes_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"bobbin/app/agents/nodes"
	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/coretest"
)

// said is what people have said of tool calls.
type said struct {
	core.RunStore

	asked   []core.Approval
	allowed map[string]bool
	err     error
	asks    int // how often it was looked at
}

func (s *said) Approvals(context.Context, core.RunID, ...string) ([]core.Approval, error) {
	s.asks++
	return s.asked, s.err
}

func (s *said) Allowed(context.Context, core.SessionID, []string) (map[string]bool, error) {
	return s.allowed, s.err
}

// careful lets people approve the calls of the tools.
func (w *world) careful(modes map[string]core.ApprovalMode) *world {
	w.said = &said{}
	w.profile.Agent.ToolSettings = core.ToolSettings{}
	for tool, mode := range modes {
		w.profile.Agent.ToolSettings[tool] = core.ToolSetting{Approval: mode}
	}
	return w
}

// held runs tool_node and returns the calls that it asks for.
func (w *world) held(s nodes.AgentState) []string {
	w.t.Helper()
	var ids []string
	for _, a := range w.questions(s) {
		ids = append(ids, a.ToolCallID)
	}
	return ids
}

// questions runs tool_node and returns what it asks.
func (w *world) questions(s nodes.AgentState) []core.Approval {
	w.t.Helper()
	_, err := w.use(w.t.Context(), s)
	waits, ok := errors.AsType[*nodes.WaitError](err)
	if !ok {
		w.t.Fatalf("got error %v, want that the run waits", err)
	}
	for _, a := range waits.Approvals {
		if a.Status != core.ApprovalOpen || a.Tool == "" || a.Arguments != "{}" || a.Mode == "" || a.Definition == "" {
			w.t.Errorf("got the question %+v", a)
		}
	}
	return waits.Approvals
}

// started returns the calls of which it was told that they start.
func (w *world) started() []string {
	var ids []string
	for _, e := range w.feed.All(core.EventToolStarted) {
		ids = append(ids, coretest.Data[core.ToolStartedData](e).ToolCallID)
	}
	return ids
}

// After the decisions what was approved runs, and the model reads of the
// others why not. What is still open is asked for again.
func TestDecidedCalls(t *testing.T) {
	t.Parallel()
	ran := 0
	w := newWorld(t, 8192).with(
		onceOf("pay", func(context.Context, tools.Call) (string, error) { ran++; return "paid", nil }),
		says("look", "seen"), says("read", "read"),
	)
	w.careful(map[string]core.ApprovalMode{"pay": core.ApprovalAlways, "look": core.ApprovalFirst, "read": core.ApprovalFirst, "unknown": core.ApprovalAlways})
	s := w.asking(call("a", "pay"), call("b", "pay"), call("c", "look"), call("d", "look"), call("e", "read"), call("f", "pay"), call("g", "unknown"))
	before := newWorld(t, 8192).with(says("look", ""), says("pay", ""), says("read", "")).careful(map[string]core.ApprovalMode{"pay": core.ApprovalAlways, "look": core.ApprovalAlways, "read": core.ApprovalAlways})
	definitions := map[string]string{}
	for _, a := range before.questions(before.asking(call("a", "pay"), call("b", "look"), call("c", "read"))) {
		definitions[a.Tool] = a.Definition
	}
	w.said.allowed = map[string]bool{definitions["read"]: true}
	decided := func(id, tool string, mode core.ApprovalMode, status core.ApprovalStatus, comment string) core.Approval {
		return core.Approval{ToolCallID: id, Tool: tool, Arguments: "{}", Definition: definitions[tool], Mode: mode, Status: status, Comment: comment}
	}
	w.said.asked = []core.Approval{
		decided("a", "pay", core.ApprovalAlways, core.ApprovalApproved, "fine"),
		decided("b", "pay", core.ApprovalAlways, core.ApprovalDenied, "too much"),
		decided("c", "look", core.ApprovalFirst, core.ApprovalExpired, core.ApprovalTooLate),
		decided("f", "pay", core.ApprovalAlways, core.ApprovalOpen, ""),
		decided("old", "read", core.ApprovalFirst, core.ApprovalDenied, "of a message before"),
	}
	compare.Equal(t, "asked for", []string{"f"}, w.held(s))
	want := []string{
		"a complete paid", "b failed not approved: too much", "c failed not approved: nobody answered in time",
		"d failed not approved: nobody answered in time", "e complete read",
		`g failed error: there is no tool "unknown"; the tools are [look pay read]`,
	}
	compare.Equal(t, "results", want, w.results())
	if got := w.started(); !slices.Contains(got, "a") || !slices.Contains(got, "e") || slices.Contains(got, "b") {
		t.Errorf("got the calls %v as started, want those that were approved", got)
	}
	compare.Equal(t, "paid times, noted: want the approved call once", []any{1, 1, "a"}, []any{ran, len(w.Starts), w.Starts[0].CallID})
}

// An approval is for the tool that was asked for: a call whose tool has changed since is asked for
// again, whether its approval was for one call or for the session. A denial stays one, also when the
// tool needs no approval any more.
func TestChangedToolIsAskedForAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 8192).with(says("pay", "paid"), says("look", "seen"), says("free", "done"))
	w.careful(map[string]core.ApprovalMode{"pay": core.ApprovalAlways, "look": core.ApprovalFirst, "free": core.ApprovalAlways})
	s := w.asking(call("a", "pay"), call("b", "look"), call("c", "free"))
	w.said.asked = w.questions(s)
	for i := range w.said.asked {
		w.said.asked[i].Status = core.ApprovalApproved
	}
	w.said.asked[2].Status = core.ApprovalDenied
	w.said.allowed = map[string]bool{w.said.asked[1].Definition: true}
	pay, look := says("pay", ""), says("look", "")
	pay.Definition.Description, look.Definition.Description = "pays twice", "looks elsewhere"
	w.with(pay, look, says("free", "done"))
	delete(w.profile.Agent.ToolSettings, "free")
	s.Profile, s.Run.Attempt, w.run.Attempt = w.profile, 2, 2
	compare.Equal(t, "asked for", []string{"a", "b"}, w.held(s))
	compare.Equal(t, "results", []string{"c failed not approved"}, w.results())
}

// Nothing starts while it is not known what may.
func TestApprovalsAreNotReadable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 8192).with(says("pay", "paid"), says("free", "done"))
	w.careful(map[string]core.ApprovalMode{"pay": core.ApprovalFirst})
	w.said.err = errors.New("away")
	if _, err := w.use(t.Context(), w.asking(call("a", "pay"), call("b", "free"))); !errors.Is(err, w.said.err) || len(w.results()) != 0 {
		t.Errorf("got %v and %v, want the error and no result", err, w.results())
	}
}
