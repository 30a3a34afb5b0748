package agents

import (
	"bobbin/app/agents/tools"
	"bobbin/app/core"
)

// Directory shows what agents there are, with the graph that they run through.
type Directory struct {
	core.AgentCatalog
	engine *Engine
}

// NewDirectory returns a directory of the agents that the engine runs.
func NewDirectory(agents core.AgentCatalog, engine *Engine) *Directory {
	return &Directory{AgentCatalog: agents, engine: engine}
}

// Graph returns the agent's graph. ErrNotFound for an agent that does not exist.
func (d *Directory) Graph(name string) (core.GraphView, error) {
	if _, err := d.Get(name); err != nil {
		return core.GraphView{}, err
	}
	return d.engine.graph.Describe(), nil
}

// Mermaid returns the agent's graph as a Mermaid drawing.
func (d *Directory) Mermaid(name string) (string, error) {
	if _, err := d.Get(name); err != nil {
		return "", err
	}
	return d.engine.graph.Mermaid(), nil
}

// Resolved shows the agents with the tools that they have at the moment.
type Resolved struct {
	core.AgentCatalog
	tools *tools.Set
}

// NewResolved returns the agents of the catalog with their tools of the set.
func NewResolved(agents core.AgentCatalog, set *tools.Set) *Resolved {
	return &Resolved{AgentCatalog: agents, tools: set}
}

// Get returns the agent of the name. Errors are those of the catalog.
func (r *Resolved) Get(name string) (core.Agent, error) {
	agent, err := r.AgentCatalog.Get(name)
	if err == nil {
		agent, _ = r.tools.Resolve(agent)
	}
	return agent, err
}

// List returns all agents.
func (r *Resolved) List() []core.Agent {
	list := r.AgentCatalog.List()
	for i, agent := range list {
		list[i], _ = r.tools.Resolve(agent)
	}
	return list
}
