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

// NewEngine builds the graph. An error is a programmer's.
func NewEngine(d nodes.Deps) (*Engine, error) {
	d.Observer = core.ObserverOrNone(d.Observer)
	compiled, err := buildGraph(map[string]graph.NodeFunc[nodes.AgentState]{
		nodes.NameProcessMessage:  (&nodes.ProcessMessage{Deps: d}).Run,
		nodes.NameRetrieveContext: (&nodes.RetrieveContext{Deps: d}).Run,
		nodes.NameSaveUserMessage: (&nodes.SaveUserMessage{Deps: d}).Run,
		nodes.NameLLM:             (&nodes.LLM{Deps: d}).Run,
		nodes.NameTools:           (&nodes.Tools{Deps: d}).Run,
	})
	if err != nil {
		return nil, fmt.Errorf("agent graph: %w", err)
	}
	return &Engine{graph: compiled, deps: d}, nil
}

// buildGraph puts the nodes together. This is the whole shape of an agent.
func buildGraph(node map[string]graph.NodeFunc[nodes.AgentState]) (*graph.Compiled[nodes.AgentState], error) {
	g := graph.New[nodes.AgentState]()
	for _, name := range []string{nodes.NameProcessMessage, nodes.NameRetrieveContext, nodes.NameSaveUserMessage, nodes.NameLLM, nodes.NameTools} {
		g.Node(name, node[name])
	}
	g.Edge(graph.START, nodes.NameProcessMessage)
	g.Edge(nodes.NameProcessMessage, nodes.NameRetrieveContext)
	g.Edge(nodes.NameRetrieveContext, nodes.NameSaveUserMessage)
	g.Edge(nodes.NameSaveUserMessage, nodes.NameLLM)
	g.ConditionalEdge(nodes.NameLLM, afterModel, nodes.NameTools, graph.END)
	g.Edge(nodes.NameTools, nodes.NameLLM)
	return g.Compile()
}

// afterModel goes on with the tools while the model asks for some.
func afterModel(_ context.Context, s nodes.AgentState) string {
	if len(s.OpenCalls()) > 0 {
		return nodes.NameTools
	}
	return graph.END
}
