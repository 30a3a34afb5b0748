package nodes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"bobbin/app/agents/graph"
	"bobbin/app/agents/state"
	"bobbin/app/core"
	"bobbin/app/tools"
)

// executionStore remembers which tools were started that must not run twice.
type executionStore interface {
	StartTools(ctx context.Context, run core.RunID, attempt int, starts []core.ToolExecution) error
	ToolExecutions(ctx context.Context, run core.RunID) ([]core.ToolExecution, error)
}

// ToolLimits bound what a tool may take.
type ToolLimits struct {
	Time   time.Duration // of one call
	Output int           // bytes of a result; a larger one is an error
	Shown  int           // bytes of a result that prompts show; of a larger one an excerpt; 0 = all
}

// with returns the limits as an agent's settings of a tool change them.
func (l ToolLimits) with(s core.ToolSetting) ToolLimits {
	if s.Timeout > 0 {
		l.Time = time.Duration(s.Timeout)
	}
	if s.MaxOutputBytes > 0 {
		l.Shown = s.MaxOutputBytes
	}
	return l
}

// ToolRunner is the node tool_node: it runs the open tool calls in parallel and
// stores their results in the order of the calls. What goes wrong with a tool is
// its result: the model reads it and decides. Calls that a person must approve do not
// start before that: the node interrupts the graph for them.
type ToolRunner struct{ ToolOptions }

// ToolOptions are what a ToolRunner is made of. All but Observer are required.
type ToolOptions struct {
	Tools      *tools.Set
	Journal    journal
	Executions executionStore
	Approvals  approvalStore
	Counter    counter
	Limits     ToolLimits
	Logger     *slog.Logger
	Observer   toolObserver // nil = nobody is told
}

// NewToolRunner returns the node.
func NewToolRunner(o ToolOptions) *ToolRunner { return &ToolRunner{o} }

// result is what a call came to.
type result struct {
	text    string
	status  core.MessageStatus // empty = the run was broken off before the tool had ended
	outcome string             // for the observer
}

// Run does the node's work. Errors: ErrStale, and the context's own when the run
// is canceled: what its tools had done before is stored all the same. The interrupt
// of a run that must wait is a graph.InterruptError[[]core.Approval]; the results of
// the calls that need not are stored then.
func (n *ToolRunner) Run(ctx context.Context, s state.AgentState) (state.AgentState, error) {
	g, err := n.admit(ctx, s, s.OpenCalls())
	if err != nil {
		return s, err
	}
	if len(g.through) > 0 {
		s, err = n.run(ctx, s, g)
	}
	if err == nil && len(g.asked) > 0 {
		err = graph.Interrupt(g.asked)
	}
	return s, err
}

// run gives the calls that go through their results.
func (n *ToolRunner) run(ctx context.Context, s state.AgentState, g gate) (state.AgentState, error) {
	calls := g.through
	interrupted, err := n.start(ctx, s, g)
	if err != nil {
		return s, err
	}
	results := make([]result, len(calls))
	var wg sync.WaitGroup
	for i, c := range calls {
		if a, refused := g.refused[c.ID]; refused {
			results[i] = n.denied(ctx, c, a)
			continue
		}
		if interrupted[c.ID] {
			results[i] = n.interrupted(ctx, c)
			continue
		}
		wg.Go(func() { results[i] = n.observed(ctx, s, c) })
	}
	wg.Wait()
	if ctx.Err() != nil {
		n.keep(ctx, s, calls, results)
		return s, fmt.Errorf("run tools: %w", context.Cause(ctx))
	}
	return n.store(ctx, s, calls, results)
}

// keep stores the results of the calls that had ended when the run was broken off.
func (n *ToolRunner) keep(ctx context.Context, s state.AgentState, calls []core.ToolCall, results []result) {
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
	if _, err := n.store(ctx, s, ended, kept); err != nil {
		n.Logger.WarnContext(ctx, "tool results lost", "run_id", s.Run.ID, "tools", len(ended), "err", err)
	}
}

// start notes the calls that must not run twice and returns those that an
// attempt before this one has started: their outcome is not known.
func (n *ToolRunner) start(ctx context.Context, s state.AgentState, g gate) (map[string]bool, error) {
	if err := n.tellStarted(ctx, s, g); err != nil {
		return nil, err
	}
	var once []core.ToolExecution
	for _, c := range g.through {
		if _, refused := g.refused[c.ID]; refused {
			continue
		}
		if t, ok := n.lookup(s, c.Name); ok && !t.Idempotent() {
			once = append(once, core.ToolExecution{
				RunID: s.Run.ID, SessionID: s.Run.SessionID, Owner: s.Run.Owner, CallID: c.ID,
				Attempt: s.Run.Attempt, Tool: c.Name, StartedAt: core.Now(),
			})
		}
	}
	if len(once) == 0 {
		return nil, nil
	}
	known, err := n.Executions.ToolExecutions(ctx, s.Run.ID)
	if err != nil {
		return nil, fmt.Errorf("load tool executions: %w", err)
	}
	interrupted := map[string]bool{}
	for _, e := range known {
		interrupted[e.CallID] = true
	}
	var fresh []core.ToolExecution
	for _, e := range once {
		if !interrupted[e.CallID] {
			fresh = append(fresh, e)
		}
	}
	if err := n.Executions.StartTools(ctx, s.Run.ID, s.Run.Attempt, fresh); err != nil {
		return nil, fmt.Errorf("note tool executions: %w", err)
	}
	return interrupted, nil
}

// lookup finds a tool that the agent has.
func (n *ToolRunner) lookup(s state.AgentState, name string) (tools.Tool, bool) {
	for _, have := range s.Profile.Agent.Tools {
		if have == name {
			return n.Tools.Lookup(name)
		}
	}
	return nil, false
}

// unwindTime is how long a tool has to return when its time is over. One that
// does not is left behind: it must not hold the run, nor a cancel, for ever.
const unwindTime = 5 * time.Second

// call runs one tool within its limits.
func (n *ToolRunner) call(ctx context.Context, s state.AgentState, c core.ToolCall) result {
	tool, ok := n.lookup(s, c.Name)
	if !ok {
		return result{fmt.Sprintf("error: there is no tool %q; the tools are %v", c.Name, s.Profile.Agent.Tools), core.MessageFailed, outcomeUnknown}
	}
	limits := n.Limits.with(s.Profile.Agent.ToolSettings[c.Name])
	limited, cancel := context.WithTimeout(ctx, limits.Time)
	defer cancel()
	done := make(chan result, 1)
	go func() {
		text, err := n.protect(limited, s, c, tool)
		done <- n.judge(ctx, text, err, overdue(limited, tool, limits.Time))
	}()
	select {
	case r := <-done:
		return r
	case <-limited.Done():
	}
	late := time.NewTimer(unwindTime)
	defer late.Stop()
	select {
	case r := <-done:
		return r
	case <-late.C:
		n.Logger.ErrorContext(ctx, "tool does not stop", "tool", c.Name, "run_id", s.Run.ID)
		return n.judge(ctx, "", limited.Err(), overdue(limited, tool, limits.Time))
	}
}

// errToolPanic is what a tool that panicked comes to.
var errToolPanic = errors.New("the tool failed")

// protect calls the tool and turns a panic into an error.
func (n *ToolRunner) protect(ctx context.Context, s state.AgentState, c core.ToolCall, tool tools.Tool) (text string, err error) {
	defer func() {
		if p := recover(); p != nil {
			n.Logger.ErrorContext(ctx, "tool panicked", "tool", c.Name, "run_id", s.Run.ID, "panic", p, "stack", string(debug.Stack()))
			err = errToolPanic
		}
	}()
	return tool.Call(ctx, tools.Call{ID: c.ID, Arguments: c.Arguments, Session: s.Session, Settings: s.Profile.Agent.ToolSettings[c.Name]})
}

// overdue returns what is wrong with a tool whose time is over, or nil.
func overdue(limited context.Context, tool tools.Tool, limit time.Duration) error {
	switch {
	case !errors.Is(limited.Err(), context.DeadlineExceeded):
		return nil
	case tool.Idempotent():
		return fmt.Errorf("the tool did not answer within %s", limit)
	default:
		return fmt.Errorf("the tool did not answer within %s; whether it took effect is not known", limit)
	}
}

// judge makes a result of what a tool answered.
func (n *ToolRunner) judge(ctx context.Context, text string, err, overdue error) result {
	outcome := outcomeFailed
	switch {
	case err == nil && len(text) <= n.Limits.Output:
		return result{core.CleanText(text), core.MessageComplete, outcomeOK}
	case err == nil:
		outcome, err = outcomeTooLarge, fmt.Errorf("the result has %d bytes, over the limit of %d; ask for less", len(text), n.Limits.Output)
	case ctx.Err() != nil:
		return result{outcome: outcomeCanceled} // broken off
	case overdue != nil:
		outcome, err = outcomeTimeout, overdue
	case errors.Is(err, errToolPanic):
		outcome = outcomePanicked
	}
	return result{core.CleanText(core.Clip("error: "+err.Error(), n.Limits.Output)), core.MessageFailed, outcome}
}

// previewBytes is how much of a result its event shows.
const previewBytes = 200

// store writes all results in the order of the calls.
func (n *ToolRunner) store(ctx context.Context, s state.AgentState, calls []core.ToolCall, results []result) (state.AgentState, error) {
	w := write(s)
	for i, c := range calls {
		m := core.Message{
			ID: core.NewID[core.MessageID](), SessionID: s.Run.SessionID, Owner: s.Run.Owner, OnPath: true,
			Role: core.RoleTool, Content: results[i].text, Status: results[i].status, ToolCallID: c.ID, ToolName: c.Name,
			Source: s.Run.Input.Source, RunID: s.Run.ID, CreatedAt: core.Now(),
		}
		m = core.WithExcerpt(m, n.Limits.with(s.Profile.Agent.ToolSettings[c.Name]).Shown)
		m.TokenCount = n.count(m)
		w.Messages = append(w.Messages, m)
		w.Events = append(w.Events, core.NewEvent(s.Run.SessionID, s.Run.ID, core.EventToolFinished, core.ToolFinishedData{
			ToolCallID: c.ID, Status: m.Status, Preview: core.Clip(m.Content, previewBytes),
		}))
	}
	written, err := n.Journal.Append(ctx, w)
	if err != nil {
		return s, fmt.Errorf("store tool results: %w", err)
	}
	s.RunMessages = append(s.RunMessages[:len(s.RunMessages):len(s.RunMessages)], written.Messages...)
	return s, nil
}

// count counts a result as prompts show it.
func (n *ToolRunner) count(m core.Message) int {
	m.Content = m.Shown(true)
	return n.Counter.Message(m)
}
