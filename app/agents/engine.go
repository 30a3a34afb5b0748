package agents

import (
	"context"
	"errors"
	"fmt"
	"time"

	"bobbin/app/agents/graph"
	"bobbin/app/agents/nodes"
	"bobbin/app/core"
	"bobbin/app/core/compaction"
)

// Engine executes runs. Safe for concurrent use.
type Engine struct {
	graph *graph.Compiled[nodes.AgentState]
	deps  nodes.Deps
}

// NewEngine builds the graph: the whole shape of an agent. An error is a programmer's.
func NewEngine(d nodes.Deps) (*Engine, error) {
	d.Observer = core.ObserverOrNone(d.Observer)
	compiled, err := graph.New[nodes.AgentState]().
		Node(nodes.NameProcessMessage, (&nodes.ProcessMessage{Deps: d}).Run).
		Node(nodes.NameRetrieveContext, (&nodes.RetrieveContext{Deps: d}).Run).
		Node(nodes.NameSaveUserMessage, (&nodes.SaveUserMessage{Deps: d}).Run).
		Node(nodes.NameLLM, (&nodes.LLM{Deps: d}).Run).
		Node(nodes.NameTools, (&nodes.Tools{Deps: d}).Run).
		Edge(graph.START, nodes.NameProcessMessage).
		Edge(nodes.NameProcessMessage, nodes.NameRetrieveContext).
		Edge(nodes.NameRetrieveContext, nodes.NameSaveUserMessage).
		Edge(nodes.NameSaveUserMessage, nodes.NameLLM).
		ConditionalEdge(nodes.NameLLM, func(_ context.Context, s nodes.AgentState) string {
			if len(s.OpenCalls()) > 0 {
				return nodes.NameTools
			}
			return graph.END
		}, nodes.NameTools, graph.END).
		Edge(nodes.NameTools, nodes.NameLLM).
		Compile()
	if err != nil {
		return nil, fmt.Errorf("agent graph: %w", err)
	}
	return &Engine{graph: compiled, deps: d}, nil
}

// stepsBesides is how many steps a run takes besides model calls and tool rounds, with some to spare.
const stepsBesides = 8

// mostSteps bounds the steps of any run, whatever its agent's file says.
const mostSteps = 2*1000 + stepsBesides

// Execute takes the run through the graph and returns when it has ended, or waits for
// a decision, in the database, or with the error that ended it: then the caller writes the end. It
// may be called for a run that another attempt has begun: what the log holds is
// not done again. Session and message are as the transaction left them that started the run; empty
// ones are loaded.
func (e *Engine) Execute(ctx context.Context, c core.Claimed) error {
	run := c.Run
	tell := func(ctx context.Context, kind core.EventType, data core.NodeData) { // the watchers, where the run is
		e.deps.Journal.Delta(ctx, core.NewEvent(run.SessionID, run.ID, kind, data))
	}
	s, err := e.graph.Run(ctx, nodes.AgentState{Turn: compaction.Turn{Session: c.Session}, Run: run, UserMessage: c.Message}, mostSteps,
		func(ctx context.Context, node string, step int) (context.Context, func(error)) {
			begin := time.Now()
			tell(ctx, core.EventNodeStarted, core.NodeData{Node: node, Step: step})
			ctx, ended := e.deps.Observer.Node(ctx, node)
			return ctx, func(err error) {
				if _, waits := errors.AsType[*nodes.WaitError](err); waits {
					err = nil
				}
				ended(err)
				tell(ctx, core.EventNodeFinished, core.NodeData{Node: node, Step: step, MS: int64(time.Since(begin) / time.Millisecond)})
			}
		})
	if err == nil {
		// Another model or other options than the session's say nothing about its next run.
		if run.Model != "" || run.Options != nil || !e.deps.Compactor.IsDone(s.NextTurn()) {
			e.deps.Compactor.Enqueue(run.Tenant(), run.SessionID)
		}
		return nil
	}
	if w, waits := errors.AsType[*nodes.WaitError](err); waits {
		_, err := e.deps.Journal.Append(ctx, core.RunWrite{
			RunID: run.ID, SessionID: run.SessionID, Attempt: run.Attempt,
			Wait: &core.RunWait{Approvals: w.Approvals, Expiry: e.deps.ApprovalTime},
		})
		if err != nil {
			return fmt.Errorf("wait for approval: %w", err)
		}
		return nil
	}
	if errors.Is(err, graph.ErrStepLimit) {
		return &core.Error{Kind: core.ErrUnprocessable, Code: "step_limit", Err: err,
			Message: fmt.Sprintf("The answer took more than %d steps and was stopped. Ask for less at once.", mostSteps)}
	}
	return err
}
