// Package graph runs a state through named nodes, in LangGraph's terms: nodes,
// edges, conditional edges, START and END.
//
//	g := graph.New[State]()
//	g.Node("llm_node", callModel)
//	g.Node("tool_node", callTools)
//	g.Edge(graph.START, "llm_node")
//	g.ConditionalEdge("llm_node", route, "tool_node", graph.END)
//	g.Edge("tool_node", "llm_node")
//	compiled, err := g.Compile()
//	…
//	state, err = compiled.Run(ctx, state, 100, nil)
//
// which is
//
//	START ──▶ llm_node ╌╌▶ END
//	           ╎    ▲
//	           ▼    │
//	         tool_node
//
// A Graph collects declarations and is used by one goroutine. Compile gives a Compiled,
// which never changes and is safe for concurrent runs.
//
// # One run
//
// Everything happens in the goroutine that called Run: nodes, routers and the
// observer, one after the other. What is promised:
//
//   - A node is entered only over a declared edge.
//   - A node gets the state that the node before it returned. It must not change
//     what its state points to, but return a new state.
//   - On an error Run returns the last good state: what the failed node was given,
//     never what it returned beside its error.
//   - A canceled ctx lets no further node start. A node at work sees it through
//     its own ctx; what it returns without an error still counts.
//   - A panic in a node or a router goes through to the caller of Run.
//   - A node that needs an answer from outside ends the run with an error: the caller runs the
//     graph again when it has the answer.
//   - Nothing is stored: every run begins at START, and nodes find in the state, or in
//     the caller's log, what was done before.
package graph
