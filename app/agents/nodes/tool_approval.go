package nodes

import (
	"context"
	"fmt"

	"bobbin/app/agents/state"
	"bobbin/app/core"
)

// approvalStore knows what people have said of tool calls.
type approvalStore interface {
	// Approvals returns the run's questions, decided or not.
	Approvals(ctx context.Context, run core.RunID) ([]core.Approval, error)
	// Allowed returns those of the tools, asked for once, that were approved in the session.
	Allowed(ctx context.Context, session core.SessionID, tools []string) (map[string]bool, error)
}

// gate says what becomes of the open calls.
type gate struct {
	through []core.ToolCall          // get a result now: they start, or were refused
	refused map[string]core.Approval // of those the refused ones, by the call's id
	asked   []core.Approval          // what must be answered before the others can start
	started []core.Event             // tool.started of the calls that were held back before
}

// approvalMode returns when a person must agree to a call of the tool; empty = never.
func approvalMode(s state.AgentState, tool string) core.ApprovalMode {
	return s.Profile.Agent.ToolSettings[tool].Approval
}

// admit sorts the open calls. Those that need nobody's approval do not wait for the
// others. A tool that is asked for once is asked for once in a message, too.
func (n *ToolRunner) admit(ctx context.Context, s state.AgentState, calls []core.ToolCall) (gate, error) {
	g := gate{refused: map[string]core.Approval{}}
	asked, allowed, err := n.decided(ctx, s, calls)
	if err != nil {
		return g, err
	}
	for _, c := range calls {
		mode := approvalMode(s, c.Name)
		if _, known := n.lookup(s, c.Name); !known || mode == "" {
			g.through = append(g.through, c)
			continue
		}
		a, found := core.ApprovalOf(asked, calls, c)
		switch {
		case mode == core.ApprovalFirst && allowed[c.Name], a.Status == core.ApprovalApproved:
			g.through = append(g.through, c)
			g.started = append(g.started, toolStarted(s, c))
		case !found:
			a = core.Approval{ToolCallID: c.ID, Tool: c.Name, Arguments: c.Arguments, Mode: mode, Status: core.ApprovalOpen}
			asked, g.asked = append(asked, a), append(g.asked, a)
		case a.Status == core.ApprovalOpen:
			if a.ToolCallID == c.ID {
				g.asked = append(g.asked, a)
			}
		default:
			g.through, g.refused[c.ID] = append(g.through, c), a
		}
	}
	return g, nil
}

// decided returns what was asked and decided before, if any of the calls needs it.
func (n *ToolRunner) decided(ctx context.Context, s state.AgentState, calls []core.ToolCall) ([]core.Approval, map[string]bool, error) {
	var first []string
	needed := false
	for _, c := range calls {
		mode := approvalMode(s, c.Name)
		needed = needed || mode != ""
		if mode == core.ApprovalFirst {
			first = append(first, c.Name)
		}
	}
	if !needed {
		return nil, nil, nil
	}
	asked, err := n.Approvals.Approvals(ctx, s.Run.ID)
	if err != nil {
		return nil, nil, fmt.Errorf("load approvals: %w", err)
	}
	if len(first) == 0 {
		return asked, nil, nil
	}
	allowed, err := n.Approvals.Allowed(ctx, s.Run.SessionID, first)
	if err != nil {
		return nil, nil, fmt.Errorf("load approved tools: %w", err)
	}
	return asked, allowed, nil
}

// tellStarted tells that calls start which were held back when the model wrote them.
func (n *ToolRunner) tellStarted(ctx context.Context, s state.AgentState, g gate) error {
	if len(g.started) == 0 {
		return nil
	}
	w := write(s)
	w.Events = g.started
	if _, err := n.Journal.Append(ctx, w); err != nil {
		return fmt.Errorf("tell that tools start: %w", err)
	}
	return nil
}

// denied is the result of a call that was not approved.
func (n *ToolRunner) denied(ctx context.Context, c core.ToolCall, a core.Approval) result {
	_, ended := n.tell(ctx, c)
	ended(outcomeDenied)
	return result{core.CleanText(core.Clip(a.Refusal(), n.Limits.Output)), core.MessageFailed, outcomeDenied}
}

// toolStarted is the event of a call that starts.
func toolStarted(s state.AgentState, c core.ToolCall) core.Event {
	return core.NewEvent(s.Run.SessionID, s.Run.ID, core.EventToolStarted,
		core.ToolStartedData{ToolCallID: c.ID, Name: c.Name, Arguments: c.Arguments})
}
