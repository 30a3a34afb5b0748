package nodes

import (
	"context"

	"bobbin/app/agents/state"
	"bobbin/app/core"
)

// toolObserver is told of every tool call (telemetry).
type toolObserver interface {
	// Tool is told of a call that begins, which goes on with the context returned. The
	// name is the model's; ended is called once, with one of the outcomes.
	Tool(ctx context.Context, name, callID string) (_ context.Context, ended func(outcome string))
}

// What became of a tool call, for the observer.
const (
	outcomeOK          = "ok"
	outcomeFailed      = "failed"
	outcomeTimeout     = "timeout"
	outcomePanicked    = "panicked"
	outcomeTooLarge    = "too_large"
	outcomeCanceled    = "canceled"
	outcomeUnknown     = "unknown"     // the agent has no such tool
	outcomeDenied      = "denied"      // a person did not approve it
	outcomeInterrupted = "interrupted" // by a crash: an execution before this one had started it
)

// observed is call, of which the observer is told.
func (n *ToolRunner) observed(ctx context.Context, s state.AgentState, c core.ToolCall) result {
	ctx, ended := n.tell(ctx, c)
	r := n.call(ctx, s, c)
	ended(r.outcome)
	return r
}

// interrupted is the result of a call that an execution before this one had started.
func (n *ToolRunner) interrupted(ctx context.Context, c core.ToolCall) result {
	_, ended := n.tell(ctx, c)
	ended(outcomeInterrupted)
	return result{"error: the call was interrupted; whether it took effect is not known", core.MessageFailed, outcomeInterrupted}
}

func (n *ToolRunner) tell(ctx context.Context, c core.ToolCall) (context.Context, func(outcome string)) {
	if n.Observer == nil {
		return ctx, func(string) {}
	}
	return n.Observer.Tool(ctx, c.Name, c.ID)
}
