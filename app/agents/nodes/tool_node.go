package nodes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
)

// ToolLimits bound what a tool may take.
type ToolLimits struct {
	Time   time.Duration // of one call
	Output int           // bytes of a result; a larger one is an error
	Shown  int           // bytes of a result that prompts show; of a larger one an excerpt; 0 = all
}

// withSettings returns the limits as an agent's settings of a tool change them.
func (l ToolLimits) withSettings(s core.ToolSetting) ToolLimits {
	if s.Timeout > 0 {
		l.Time = time.Duration(s.Timeout)
	}
	if s.MaxOutputBytes > 0 {
		l.Shown = s.MaxOutputBytes
	}
	return l
}

// Tools is the node tool_node: it runs the open tool calls in parallel and
// stores their results in the order of the calls. What goes wrong with a tool is
// its result: the model reads it and decides. Calls that a person must approve do not
// start before that: the node interrupts the graph for them.
type Tools struct{ Deps }

// result is what a call came to.
type result struct {
	text    string
	status  core.MessageStatus // empty = the run was broken off before the tool had ended
	outcome string             // for the observer
}

// Run does the node's work. Errors: ErrStale, and the context's own when the run
// is canceled: what its tools had done before is stored all the same. A *WaitError of
// a run that must wait; the results of the calls that need not are stored then.
func (n *Tools) Run(ctx context.Context, s AgentState) (AgentState, error) {
	g, err := n.sortCalls(ctx, s, s.OpenCalls())
	if err != nil {
		return s, err
	}
	if len(g.through) > 0 {
		s, err = n.runCalls(ctx, s, g)
	}
	if err == nil && len(g.asked) > 0 {
		err = &WaitError{Approvals: g.asked}
	}
	return s, err
}

// runCalls gives the calls that go through their results.
func (n *Tools) runCalls(ctx context.Context, s AgentState, g gate) (AgentState, error) {
	calls := g.through
	interrupted, err := n.recordStarts(ctx, s, g)
	if err != nil {
		return s, err
	}
	results := make([]result, len(calls))
	var wg sync.WaitGroup
	for i, c := range calls {
		if a, decided := g.decided[c.ID]; decided {
			results[i] = n.decidedResult(ctx, c, a)
			continue
		}
		if interrupted[c.ID] {
			_, ended := n.Observer.Tool(ctx, c.Name, c.ID)
			ended(outcomeInterrupted)
			results[i] = result{"error: the call was interrupted; whether it took effect is not known", core.MessageFailed, outcomeInterrupted}
			continue
		}
		wg.Go(func() {
			ctx, ended := n.Observer.Tool(ctx, c.Name, c.ID)
			r := n.callTool(ctx, s, c)
			ended(r.outcome)
			if arguments := g.edited[c.ID]; arguments != "" { // the model wrote others
				r.text = "[A person changed the arguments of this call to " + arguments + "]\n" + r.text
			}
			results[i] = r
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		n.storeInterrupted(ctx, s, calls, results)
		return s, fmt.Errorf("run tools: %w", context.Cause(ctx))
	}
	return n.storeResults(ctx, s, calls, results)
}

// storeInterrupted stores the results of the calls that had ended when the run was broken off.
func (n *Tools) storeInterrupted(ctx context.Context, s AgentState, calls []core.ToolCall, results []result) {
	var ended []core.ToolCall
	var kept []result
	for i, r := range results {
		if r.status != "" {
			ended, kept = append(ended, calls[i]), append(kept, r)
		}
	}
	if len(ended) == 0 {
		return
	}
	if _, err := n.storeResults(ctx, s, ended, kept); err != nil {
		n.Logger.WarnContext(ctx, "tool results lost", "run_id", s.Run.ID, "tools", len(ended), "err", err)
	}
}

// recordStarts notes the calls that must not run twice and returns those that an
// attempt before this one has started: their outcome is not known.
func (n *Tools) recordStarts(ctx context.Context, s AgentState, g gate) (map[string]bool, error) {
	if w := newWrite(s); len(g.started) > 0 {
		w.Events = g.started
		if err := n.write(ctx, w, "tell that tools start"); err != nil {
			return nil, err
		}
	}
	var once []core.ToolExecution
	vanished := false // a tool that an attempt before this one may have started
	for _, c := range g.through {
		if _, decided := g.decided[c.ID]; decided {
			continue
		}
		t, ok := n.lookupTool(s, c.Name)
		vanished = vanished || !ok && s.Run.Attempt > 1
		if ok && !t.Repeatable {
			once = append(once, core.ToolExecution{
				RunID: s.Run.ID, SessionID: s.Run.SessionID, Owner: s.Run.Owner, CallID: c.ID,
				Attempt: s.Run.Attempt, Tool: c.Name, StartedAt: core.Now(),
			})
		}
	}
	if len(once) == 0 && !vanished {
		return nil, nil
	}
	known, err := n.Runs.ToolExecutions(ctx, s.Run.ID)
	if err != nil {
		return nil, fmt.Errorf("load tool executions: %w", err)
	}
	interrupted := map[string]bool{}
	for _, e := range known {
		interrupted[e.CallID] = true
	}
	if len(once) > 0 {
		once = slices.DeleteFunc(once, func(e core.ToolExecution) bool { return interrupted[e.CallID] })
		err = n.Runs.StartTools(ctx, s.Run.ID, s.Run.Attempt, once)
	}
	if err != nil {
		return nil, fmt.Errorf("note tool executions: %w", err)
	}
	return interrupted, nil
}

// lookupTool finds a tool that the agent had when the run began; false if there is none, or none any more.
func (n *Tools) lookupTool(s AgentState, name string) (*tools.Custom, bool) {
	if !slices.Contains(s.Profile.Agent.Tools, name) {
		return nil, false
	}
	return n.Tools.Find(s.Profile.Agent, name)
}

// unwindTime is how long a tool has to return when its time is over. One that
// does not is left behind: it must not hold the run, nor a cancel, for ever.
const unwindTime = 5 * time.Second

// callTool runs one tool within its limits.
func (n *Tools) callTool(ctx context.Context, s AgentState, c core.ToolCall) result {
	tool, ok := n.lookupTool(s, c.Name)
	if !ok {
		return result{fmt.Sprintf("error: there is no tool %q; the tools are %v", c.Name, s.Profile.Agent.Tools), core.MessageFailed, outcomeUnknown}
	}
	limits := n.ToolLimits.withSettings(s.Profile.Agent.ToolSettings[c.Name])
	limited, cancel := context.WithTimeout(ctx, limits.Time)
	defer cancel()
	done := make(chan result, 1)
	go func() {
		text, err := n.callProtected(limited, s, c, tool)
		done <- n.newResult(ctx, text, err, timeoutError(limited, tool, limits.Time))
	}()
	select {
	case r := <-done:
		return r
	case <-limited.Done():
	}
	select {
	case r := <-done:
		return r
	case <-time.After(unwindTime):
		n.Logger.ErrorContext(ctx, "tool does not stop", "tool", c.Name, "run_id", s.Run.ID)
		return n.newResult(ctx, "", limited.Err(), timeoutError(limited, tool, limits.Time))
	}
}

// errToolPanic is what a tool that panicked comes to.
var errToolPanic = errors.New("the tool failed")

// callProtected calls the tool and turns a panic into an error.
func (n *Tools) callProtected(ctx context.Context, s AgentState, c core.ToolCall, tool *tools.Custom) (text string, err error) {
	defer func() {
		if p := recover(); p != nil {
			n.Logger.ErrorContext(ctx, "tool panicked", "tool", c.Name, "run_id", s.Run.ID, "panic", p, "stack", string(debug.Stack()))
			err = errToolPanic
		}
	}()
	shown := map[int64]bool{s.UserMessage.Seq: true} // what the model has seen word for word: of its last prompt, and of the run
	maps.Copy(shown, s.Shown)
	for _, m := range s.RunMessages {
		shown[m.Seq] = true
	}
	return tool.Call(ctx, tools.Call{ID: c.ID, Arguments: c.Arguments, Session: s.Session, AskedAt: s.UserMessage.CreatedAt, Shown: shown, Settings: s.Profile.Agent.ToolSettings[c.Name]})
}

// timeoutError returns what is wrong with a tool whose time is over, or nil.
func timeoutError(limited context.Context, tool *tools.Custom, limit time.Duration) error {
	switch {
	case !errors.Is(limited.Err(), context.DeadlineExceeded):
		return nil
	case tool.Repeatable:
		return fmt.Errorf("the tool did not answer within %s", limit)
	default:
		return fmt.Errorf("the tool did not answer within %s; whether it took effect is not known", limit)
	}
}

// newResult makes a result of what a tool answered.
func (n *Tools) newResult(ctx context.Context, text string, err, overdue error) result {
	outcome := outcomeFailed
	switch {
	case err == nil && len(text) <= n.ToolLimits.Output:
		return result{core.CleanText(text), core.MessageComplete, outcomeOK}
	case err == nil:
		outcome, err = outcomeTooLarge, fmt.Errorf("the result has %d bytes, over the limit of %d; ask for less", len(text), n.ToolLimits.Output)
	case ctx.Err() != nil:
		return result{outcome: outcomeCanceled} // broken off
	case overdue != nil:
		outcome, err = outcomeTimeout, overdue
	case errors.Is(err, errToolPanic):
		outcome = outcomePanicked
	}
	return result{core.CleanText(core.Clip("error: "+err.Error(), n.ToolLimits.Output)), core.MessageFailed, outcome}
}

// previewBytes is how much of a result its event shows.
const previewBytes = 200

// storeResults writes all results in the order of the calls.
func (n *Tools) storeResults(ctx context.Context, s AgentState, calls []core.ToolCall, results []result) (AgentState, error) {
	w := newWrite(s)
	for i, c := range calls {
		m := core.Message{
			ID: core.NewID[core.MessageID](), SessionID: s.Run.SessionID, Owner: s.Run.Owner, OnPath: true,
			Role: core.RoleTool, Content: results[i].text, Status: results[i].status, ToolCallID: c.ID, ToolName: c.Name,
			Source: s.Run.Input.Source, RunID: s.Run.ID, CreatedAt: core.Now(),
		}
		m = core.WithExcerpt(m, n.ToolLimits.withSettings(s.Profile.Agent.ToolSettings[c.Name]).Shown)
		shown := m // as prompts show it
		shown.Content = m.Shown(true)
		m.TokenCount = n.Counter.Message(shown)
		w.Messages = append(w.Messages, m)
		w.Events = append(w.Events, core.NewEvent(s.Run.SessionID, s.Run.ID, core.EventToolFinished, core.ToolFinishedData{
			ToolCallID: c.ID, Status: m.Status, Preview: core.Clip(m.Content, previewBytes),
		}))
	}
	written, err := n.Journal.Append(ctx, w)
	if err != nil {
		return s, fmt.Errorf("store tool results: %w", err)
	}
	return s.WithRunMessages(written.Messages), nil
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
	outcomeAnswered    = "answered"    // a person answered in its place
	outcomeInterrupted = "interrupted" // by a crash: an execution before this one had started it
)
