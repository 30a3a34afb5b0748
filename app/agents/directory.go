package agents

import "bobbin/app/core"

// agentList is the configured agents (catalog.Catalog).
type agentList interface {
	agentSource
	List() []core.Agent
}

// Directory shows what agents there are, with the graph that they run through.
type Directory struct {
	agentList
	engine *Engine
}

// NewDirectory returns a directory of the agents that the engine runs.
func NewDirectory(agents agentList, engine *Engine) *Directory {
	return &Directory{agentList: agents, engine: engine}
}

// Graph returns the agent's graph. ErrNotFound for an agent that does not exist.
func (d *Directory) Graph(name string) (core.GraphView, error) {
	if _, err := d.Get(name); err != nil {
		return core.GraphView{}, err
	}
	shape := d.engine.Shape()
	view := core.GraphView{Nodes: []core.GraphNode{}, Edges: []core.GraphEdge{}}
	for _, n := range shape.Nodes {
		view.Nodes = append(view.Nodes, core.GraphNode{ID: n.ID})
	}
	for _, e := range shape.Edges {
		view.Edges = append(view.Edges, core.GraphEdge{Source: e.Source, Target: e.Target, Conditional: e.Conditional})
	}
	return view, nil
}

// Mermaid returns the agent's graph as a Mermaid drawing.
func (d *Directory) Mermaid(name string) (string, error) {
	if _, err := d.Get(name); err != nil {
		return "", err
	}
	return d.engine.Mermaid(), nil
}
