package nodes_test

import (
	"context"
	"testing"

	"bobbin/app/agents/nodes"
	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/contextwindow"
	"bobbin/tests/llmtest"
)

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
	if n := len(w.model.Requests()); n != 2 {
		t.Errorf("got %d requests, want 2", n)
	}
}
