package agents

import (
	"context"

	"bobbin/app/agents/graph"
	"bobbin/app/agents/nodes"
	"bobbin/app/core"
)

// ParseFile reads an agent from the text of a file.
func ParseFile(path, text string, known KnownParts) (core.Agent, error) {
	return parseAgent(path, []byte(text), known)
}

// Blank returns the graph without anything behind its nodes.
func Blank() (*Engine, error) {
	idle := func(_ context.Context, s nodes.AgentState) (nodes.AgentState, error) { return s, nil }
	all := map[string]graph.NodeFunc[nodes.AgentState]{}
	for _, n := range []string{nodes.NameProcessMessage, nodes.NameRetrieveContext, nodes.NameSaveUserMessage, nodes.NameLLM, nodes.NameTools} {
		all[n] = idle
	}
	compiled, err := buildGraph(all)
	return &Engine{graph: compiled}, err
}
