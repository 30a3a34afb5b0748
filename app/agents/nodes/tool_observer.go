package nodes

import (
	"context"

	"bobbin/app/core"
)

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
	outcomeAnswered    = "answered"    // a person answered in its place
	outcomeInterrupted = "interrupted" // by a crash: an execution before this one had started it
)

// callObserved is call, of which the observer is told.
func (n *Tools) callObserved(ctx context.Context, s AgentState, c core.ToolCall) result {
	ctx, ended := n.Observer.Tool(ctx, c.Name, c.ID)
	r := n.callTool(ctx, s, c)
	ended(r.outcome)
	return r
}

// interruptedResult is the result of a call that an execution before this one had started.
func (n *Tools) interruptedResult(ctx context.Context, c core.ToolCall) result {
	_, ended := n.Observer.Tool(ctx, c.Name, c.ID)
	ended(outcomeInterrupted)
	return result{"error: the call was interrupted; whether it took effect is not known", core.MessageFailed, outcomeInterrupted}
}
