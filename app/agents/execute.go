package agents

import (
	"context"
	"errors"
	"fmt"
	"time"

	"bobbin/app/agents/graph"
	"bobbin/app/agents/nodes"
	"bobbin/app/agents/state"
	"bobbin/app/core"
)

// stepsBesides is how many steps a run takes besides its model calls and tool
// rounds, with some to spare.
const stepsBesides = 8

// mostSteps bounds the steps of any run, whatever its agent's file says.
const mostSteps = 2*1000 + stepsBesides

// Execute takes the run through the graph and returns when it has ended, or waits for
// a decision, in the database, or with the error that ended it: then the caller writes the end. It
// may be called for a run that another attempt has begun: what the log holds is
// not done again.
func (e *Engine) Execute(ctx context.Context, run core.Run) error {
	_, err := e.graph.Run(ctx, state.AgentState{Run: run},
		graph.MaxSteps(mostSteps),
		graph.Observe(func(ctx context.Context, ev graph.Event) { e.observe(ctx, run, ev) }))
	if questions, waits := asked(err); waits {
		return e.wait(ctx, run, questions)
	}
	return explain(err)
}

// asked returns what a run that was interrupted asks for.
func asked(err error) ([]core.Approval, bool) {
	interrupt, ok := errors.AsType[*graph.InterruptError[[]core.Approval]](err)
	if !ok {
		return nil, false
	}
	return interrupt.Value, true
}

// wait lets the run wait for the answers.
func (e *Engine) wait(ctx context.Context, run core.Run, questions []core.Approval) error {
	_, err := e.journal.Append(ctx, core.RunWrite{
		RunID: run.ID, SessionID: run.SessionID, Attempt: run.Attempt,
		Wait: &core.RunWait{Approvals: questions, Expiry: e.approvalTime},
	})
	if err != nil {
		return fmt.Errorf("wait for approval: %w", err)
	}
	return nil
}

// explain gives the graph's step limit words that users may see.
func explain(err error) error {
	var limit *graph.StepLimitError
	if !errors.As(err, &limit) {
		return err
	}
	return &core.Error{Kind: core.ErrUnprocessable, Code: "step_limit", Err: err,
		Message: fmt.Sprintf("The answer took more than %d steps and was stopped. Ask for less at once.", limit.Limit)}
}

// observe tells the watchers where the run is.
func (e *Engine) observe(ctx context.Context, run core.Run, ev graph.Event) {
	kind, data := core.EventNodeStarted, core.NodeData{Node: ev.Node, Step: ev.Step}
	if ev.Finished {
		kind, data.MS = core.EventNodeFinished, int64(ev.Duration/time.Millisecond)
	}
	e.journal.Delta(ctx, core.NewEvent(run.SessionID, run.ID, kind, data))
}

// Mermaid returns the graph as a Mermaid drawing.
func (e *Engine) Mermaid() string { return e.graph.Mermaid() }

// Shape returns the graph's nodes and edges.
func (e *Engine) Shape() graph.Description { return e.graph.Describe() }

// Blank returns the graph without anything behind its nodes, to be drawn.
func Blank() (*Engine, error) {
	idle := func(_ context.Context, s state.AgentState) (state.AgentState, error) { return s, nil }
	all := map[string]graph.NodeFunc[state.AgentState]{}
	for _, n := range []string{nodes.ProcessMessage, nodes.RetrieveContext, nodes.SaveUserMessage, nodes.LLMNode, nodes.ToolNode} {
		all[n] = idle
	}
	compiled, err := build(all)
	return &Engine{graph: compiled}, err
}
