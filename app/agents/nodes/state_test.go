package nodes_test

import (
	"context"
	"testing"

	"bobbin/app/agents/nodes"
	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/contextwindow"
	"bobbin/tests/compare"
	"bobbin/tests/llmtest"
)

func calls(ids ...string) core.Message {
	m := core.Message{Role: core.RoleAssistant}
	for _, id := range ids {
		m.ToolCalls = append(m.ToolCalls, core.ToolCall{ID: id})
	}
	return m
}

func result(id string) core.Message { return core.Message{Role: core.RoleTool, ToolCallID: id} }

// What comes next follows from the messages.
func TestNext(t *testing.T) {
	t.Parallel()
	text := core.Message{Role: core.RoleAssistant, Content: "done"}
	for name, c := range map[string]struct {
		log       []core.Message
		open      []string
		answered  bool
		iteration int
	}{
		"nothing":                   {nil, nil, false, 0},
		"calls":                     {[]core.Message{calls("a", "b")}, []string{"a", "b"}, false, 1},
		"the second result":         {[]core.Message{calls("a", "b", "c"), result("b")}, []string{"a", "c"}, false, 1},
		"all results":               {[]core.Message{calls("a", "b"), result("b"), result("a")}, nil, false, 1},
		"an id of the round before": {[]core.Message{calls("a"), result("a"), calls("a")}, []string{"a"}, false, 2},
		"the answer":                {[]core.Message{calls("a"), result("a"), text}, nil, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := nodes.AgentState{RunMessages: c.log}
			var open []string
			for _, call := range s.OpenCalls() {
				open = append(open, call.ID)
			}
			compare.Equal(t, "open calls", c.open, open)
			if _, ok := s.Answer(); ok != c.answered {
				t.Errorf("answered: got %v, want %v", ok, c.answered)
			}
			if got := s.Iteration(); got != c.iteration {
				t.Errorf("got iteration %d, want %d (W13)", got, c.iteration)
			}
		})
	}
}

// planCounter counts how often prompts are planned.
type planCounter struct {
	compaction.Observer

	plans int
}

// Fitted counts a plan.
func (c *planCounter) Fitted(context.Context, compaction.Turn, contextwindow.Decision, error) {
	c.plans++
}

// The prompt that retrieve_context has planned is the one that is sent: a call of a model
// takes one plan, also after a tool result.
func TestOnePlanForEachCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 8192, llmtest.Call(core.ToolCall{ID: "c1", Name: "calculator", Arguments: `{"expression":"1+1"}`}), "It is 2.")
	run := w.accept(core.RunInput{Content: "What is 1+1?", Source: core.SourceAPI, TokenCount: 10})
	s := w.resume(run)
	c := &planCounter{Observer: w.keeper.Observer}
	w.keeper.Observer = c
	s, err := (&nodes.RetrieveContext{Deps: w.deps()}).Run(t.Context(), s)
	if err != nil || c.plans != 1 {
		t.Fatalf("got %d plans, %v, want 1 before the call", c.plans, err)
	}
	if s, err = w.call(t.Context(), s); err != nil || c.plans != 1 || s.Planned != nil {
		t.Fatalf("got %d plans, %v, want none besides that of retrieve_context", c.plans, err)
	}
	s = w.mustUse(s)
	if _, err = w.call(t.Context(), s); err != nil || c.plans != 2 {
		t.Errorf("got %d plans, %v, want another one after the tool result", c.plans, err)
	}
	compare.Equal(t, "requests", 2, len(w.model.Requests()))
}
