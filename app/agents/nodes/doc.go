// Package nodes holds the nodes of the agent graph, a file each:
//
//	process_message → retrieve_context → save_user_message → llm_node ⇄ tool_node → END
//
// A node is a function of the state: it reads, does its one thing, and returns the
// new state. It reaches storage, models and tools through the interfaces of
// core and those declared here, so that a whole graph runs in a test without a database.
//
// The message log is the checkpoint: a node writes what it produced before it
// returns, and every execution of a run, also one after a crash, passes through
// all nodes. llm_node and tool_node do only what the log does not hold yet, so
// that nothing is said or done twice. For calls that a person must approve tool_node
// ends the execution; the one after the decision comes by it again.
package nodes

import (
	"context"
	"fmt"

	"bobbin/app/core"
)

// The names of the nodes, as the graph, its drawing and the events say them.
const (
	NameProcessMessage  = "process_message"
	NameRetrieveContext = "retrieve_context"
	NameSaveUserMessage = "save_user_message"
	NameLLM             = "llm_node"
	NameTools           = "tool_node"
)

// newWrite returns an empty write of the state's run.
func newWrite(s AgentState) core.RunWrite {
	return core.RunWrite{RunID: s.Run.ID, SessionID: s.Run.SessionID, Attempt: s.Run.Attempt}
}

// write stores a write of which nothing is needed. What says in errors what was done.
func (d Deps) write(ctx context.Context, w core.RunWrite, what string) error {
	if _, err := d.Journal.Append(ctx, w); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
