package agents

import (
	"bobbin/app/agents/tools"
	"bobbin/app/core"
)

// Directory shows what agents there are, with the tools that they have at the moment and the graph that they run
// through. Engine is needed for graphs only.
type Directory struct {
	core.AgentCatalog

	Tools  *tools.Set
	Engine *Engine
}

// Get returns the agent of the name. Errors are those of the catalog.
func (d *Directory) Get(name string) (core.Agent, error) {
	agent, err := d.AgentCatalog.Get(name)
	if err == nil {
		agent, _ = d.Tools.Resolve(agent)
	}
	return agent, err
}

// List returns all agents.
func (d *Directory) List() []core.Agent {
	list := d.AgentCatalog.List()
	for i, agent := range list {
		list[i], _ = d.Tools.Resolve(agent)
	}
	return list
}

// Graph returns the agent's graph. ErrNotFound for an agent that does not exist.
func (d *Directory) Graph(name string) (core.GraphView, error) {
	_, err := d.AgentCatalog.Get(name)
	return d.Engine.graph.Describe(), err
}

// Mermaid returns the agent's graph as a Mermaid drawing.
func (d *Directory) Mermaid(name string) (string, error) {
	_, err := d.AgentCatalog.Get(name)
	return d.Engine.graph.Mermaid(), err
}
