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

// stepsBesides is how many steps a run takes besides its model calls and tool
// rounds, with some to spare.
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
