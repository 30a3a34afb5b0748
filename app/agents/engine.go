package agents

import (
	"context"
	"fmt"

	"bobbin/app/agents/graph"
	"bobbin/app/agents/nodes"
	"bobbin/app/core"
)

// Engine executes runs. Safe for concurrent use.
type Engine struct {
	graph *graph.Compiled[nodes.AgentState]
	deps  nodes.Deps
}

// NewEngine builds the graph: the whole shape of an agent. An error is a programmer's.
func NewEngine(d nodes.Deps) (*Engine, error) {
	d.Observer = core.ObserverOrNone(d.Observer)
	compiled, err := graph.New[nodes.AgentState]().
		Node(nodes.NameProcessMessage, (&nodes.ProcessMessage{Deps: d}).Run).
		Node(nodes.NameRetrieveContext, (&nodes.RetrieveContext{Deps: d}).Run).
		Node(nodes.NameSaveUserMessage, (&nodes.SaveUserMessage{Deps: d}).Run).
		Node(nodes.NameLLM, (&nodes.LLM{Deps: d}).Run).
		Node(nodes.NameTools, (&nodes.Tools{Deps: d}).Run).
		Edge(graph.START, nodes.NameProcessMessage).
		Edge(nodes.NameProcessMessage, nodes.NameRetrieveContext).
		Edge(nodes.NameRetrieveContext, nodes.NameSaveUserMessage).
		Edge(nodes.NameSaveUserMessage, nodes.NameLLM).
		ConditionalEdge(nodes.NameLLM, afterModel, nodes.NameTools, graph.END).
		Edge(nodes.NameTools, nodes.NameLLM).
		Compile()
	if err != nil {
		return nil, fmt.Errorf("agent graph: %w", err)
	}
	return &Engine{graph: compiled, deps: d}, nil
}

// afterModel goes on with the tools while the model asks for some.
func afterModel(_ context.Context, s nodes.AgentState) string {
	if len(s.OpenCalls()) > 0 {
		return nodes.NameTools
	}
	return graph.END
}
