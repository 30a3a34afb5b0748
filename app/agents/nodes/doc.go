// Package nodes holds the nodes of the agent graph, a file each:
//
//	process_message → retrieve_context → save_user_message → llm_node ⇄ tool_node → END
//
// A node is a function of the state: it reads, does its one thing, and returns the
// new state. It reaches storage, models and tools through the small interfaces
// declared here, so that a whole graph runs in a test without a database.
//
// The message log is the checkpoint: a node writes what it produced before it
// returns, and every execution of a run, also one after a crash, passes through
// all nodes. llm_node and tool_node do only what the log does not hold yet, so
// that nothing is said or done twice. For calls that a person must approve tool_node
// interrupts the graph; the execution after the decision comes by it again.
package nodes

import (
	"context"

	"bobbin/app/agents/state"
	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
)

// The names of the nodes, as the graph, its drawing and the events say them.
const (
	ProcessMessage  = "process_message"
	RetrieveContext = "retrieve_context"
	SaveUserMessage = "save_user_message"
	LLMNode         = "llm_node"
	ToolNode        = "tool_node"
)

// journal stores what a node produced and tells the watchers.
type journal interface {
	// Append commits one step of a run. ErrStale: the run is not ours any more.
	Append(ctx context.Context, w core.RunWrite) (core.Written, error)
	// Delta tells the watchers something that is not stored.
	Delta(ctx context.Context, e core.Event)
}

// contextKeeper makes prompts fit (compaction.Keeper).
type contextKeeper interface {
	Fit(ctx context.Context, t compaction.Turn) (compaction.Turn, contextwindow.Decision, error)
	Request(ctx context.Context, t compaction.Turn, d contextwindow.Decision) (llm.Request, contextwindow.Sent, error)
	Describe(t compaction.Turn, d contextwindow.Decision, sent contextwindow.Sent) core.ContextReport
}

// write returns an empty write of the state's run.
func write(s state.AgentState) core.RunWrite {
	return core.RunWrite{RunID: s.Run.ID, SessionID: s.Run.SessionID, Attempt: s.Run.Attempt}
}
