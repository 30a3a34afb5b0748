package nodes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"bobbin/app/core"
)

// WaitError ends the execution of a run that must wait until the approvals are decided.
type WaitError struct{ Approvals []core.Approval }

// Error says that the run waits.
func (*WaitError) Error() string { return "the run waits for approvals" }

// gate says what becomes of the open calls.
type gate struct {
	through []core.ToolCall          // get a result now: they start, or were refused or answered
	decided map[string]core.Approval // of those the ones that do not start, by the call's id
	edited  map[string]string        // the arguments with which calls start in place of the model's
	asked   []core.Approval          // what must be answered before the others can start
	started []core.Event             // tool.started of the calls that were held back before
}

// approvalMode returns when a call waits for an answer, of a client's tool for its result; empty = never.
func approvalMode(s AgentState, tool string) core.ApprovalMode {
	if s.Run.HasClientTool(tool) {
		return core.ApprovalAlways
	}
	if mode := s.Profile.Agent.ToolSettings[tool].Approval; mode != core.ApprovalNever {
		return mode
	}
	return ""
}

// sortCalls sorts the open calls. Those that need nobody's approval do not wait for the
// others. A tool that is asked for once is asked for once in a message, too.
func (n *Tools) sortCalls(ctx context.Context, s AgentState, calls []core.ToolCall) (gate, error) {
	g := gate{decided: map[string]core.Approval{}, edited: map[string]string{}}
	asked, allowed, err := n.loadDecisions(ctx, s, calls)
	if err != nil {
		return g, err
	}
	for _, c := range calls {
		mode := approvalMode(s, c.Name)
		tool, known := n.lookupTool(s, c.Name)
		definition := ""
		if known { // what a person approves: name, description and schema, and the server or program that the file names
			source, _ := s.Profile.Agent.Definition(c.Name)
			text, _ := json.Marshal([]any{tool.Definition, source}) // texts, numbers, and JSON that was checked
			sum := sha256.Sum256(text)
			definition = hex.EncodeToString(sum[:16])
		}
		a, found := core.ApprovalOf(asked, calls, c)
		kind := core.KindApproval
		if s.Run.HasClientTool(c.Name) || a.Kind == core.KindClientTool { // the client may have dropped it since
			kind = core.KindClientTool
		}
		if a.Definition != definition && (a.Status == core.ApprovalApproved || a.Status == core.ApprovalOpen) {
			a, found = core.Approval{}, false
		}
		switch {
		case mode == "" && !found, !known && kind == core.KindApproval:
			g.through = append(g.through, c)
		case mode == core.ApprovalFirst && allowed[definition], a.Status == core.ApprovalApproved:
			if a.ToolCallID == c.ID && a.Edited != "" {
				g.edited[c.ID], c.Arguments = a.Edited, a.Edited
			}
			g.through = append(g.through, c)
			g.started = append(g.started, toolStarted(s, c))
		case !found:
			a = core.Approval{Kind: kind, ToolCallID: c.ID, Tool: c.Name, Arguments: c.Arguments, Definition: definition, Mode: mode, Status: core.ApprovalOpen}
			asked, g.asked = append(asked, a), append(g.asked, a)
		case a.Status == core.ApprovalOpen:
			if a.ToolCallID == c.ID {
				g.asked = append(g.asked, a)
			}
		default:
			g.through, g.decided[c.ID] = append(g.through, c), a
		}
	}
	return g, nil
}

// loadDecisions returns what was asked and decided before, if any of the calls needs it.
func (n *Tools) loadDecisions(ctx context.Context, s AgentState, calls []core.ToolCall) ([]core.Approval, map[string]bool, error) {
	var first, ids []string
	needed := s.Run.Attempt > 1
	for _, c := range calls {
		mode := approvalMode(s, c.Name)
		needed, ids = needed || mode != "", append(ids, c.ID)
		if mode == core.ApprovalFirst {
			first = append(first, c.Name)
		}
	}
	if !needed {
		return nil, nil, nil
	}
	asked, err := n.Runs.Approvals(ctx, s.Run.ID, ids...)
	if err != nil {
		return nil, nil, fmt.Errorf("load approvals: %w", err)
	}
	if len(first) == 0 {
		return asked, nil, nil
	}
	allowed, err := n.Runs.Allowed(ctx, s.Run.SessionID, first)
	if err != nil {
		return nil, nil, fmt.Errorf("load approved tools: %w", err)
	}
	return asked, allowed, nil
}

// decidedResult is the result of a call that was not approved, or that was answered in place of
// the tool. The observer hears of the server's tools alone: clients choose the names of theirs.
func (n *Tools) decidedResult(ctx context.Context, c core.ToolCall, a core.Approval) result {
	r := result{a.Refusal(), core.MessageFailed, outcomeDenied}
	if a.Status == core.ApprovalAnswered {
		r = result{a.Result, core.MessageComplete, outcomeAnswered}
		if a.Failed {
			r.status = core.MessageFailed
		}
	}
	if a.Kind != core.KindClientTool {
		_, ended := n.Observer.Tool(ctx, c.Name, c.ID)
		ended(r.outcome)
	}
	r.text = core.CleanText(core.Clip(r.text, n.ToolLimits.Output))
	return r
}

// toolStarted is the event of a call that starts.
func toolStarted(s AgentState, c core.ToolCall) core.Event {
	return core.NewEvent(s.Run.SessionID, s.Run.ID, core.EventToolStarted,
		core.ToolStartedData{ToolCallID: c.ID, Name: c.Name, Arguments: c.Arguments})
}
