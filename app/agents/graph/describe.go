package graph

import (
	"fmt"
	"slices"
	"strings"
)

// Description is the shape of a graph as plain data, START and END included.
type Description struct {
	Nodes []NodeInfo `json:"nodes"` // START, the nodes as declared, END
	Edges []EdgeInfo `json:"edges"` // in the order of their sources, then as declared
}

// NodeInfo is a node of a Description.
type NodeInfo struct {
	ID string `json:"id"`
}

// EdgeInfo is an edge of a Description; a conditional edge has one for each target.
type EdgeInfo struct {
	Source      string `json:"source"`
	Target      string `json:"target"`
	Conditional bool   `json:"conditional"`
}

// Describe returns the shape of the graph; always the same for the same graph.
func (c *Compiled[S]) Describe() Description {
	d := Description{Nodes: []NodeInfo{{ID: START}}}
	for _, name := range c.order {
		d.Nodes = append(d.Nodes, NodeInfo{ID: name})
	}
	d.Nodes = append(d.Nodes, NodeInfo{ID: END})
	for _, from := range d.Nodes {
		exit := c.exits[from.ID]
		for _, to := range exit.targets {
			d.Edges = append(d.Edges, EdgeInfo{Source: from.ID, Target: to, Conditional: exit.conditional})
		}
	}
	return d
}

// Mermaid returns the graph as a Mermaid flowchart; conditional edges are dotted.
// Always the same for the same graph.
func (c *Compiled[S]) Mermaid() string {
	d := c.Describe()
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	for _, n := range d.Nodes {
		fmt.Fprintf(&b, "    %s\n", mermaidNode(n.ID))
	}
	for _, e := range d.Edges {
		arrow := "-->"
		if e.Conditional {
			arrow = "-.->"
		}
		fmt.Fprintf(&b, "    %s %s %s\n", mermaidID(e.Source), arrow, mermaidID(e.Target))
	}
	return b.String()
}

// mermaidNode declares a node: its name alone is its label too.
func mermaidNode(name string) string {
	id := mermaidID(name)
	switch {
	case name == START || name == END:
		return fmt.Sprintf("%s([%q])", id, displayName(name))
	case id != name:
		return fmt.Sprintf("%s[%q]", id, name)
	default:
		return id
	}
}

// mermaidID returns a name as Mermaid takes it: its keywords get a tail that no
// name may have.
func mermaidID(name string) string {
	keywords := []string{"call", "class", "classdef", "click", "default", "direction", "end", "flowchart", "graph", "href",
		"interpolate", "linkstyle", "style", "subgraph", "tb", "td", "bt", "rl", "lr", "br"}
	if slices.Contains(keywords, strings.ToLower(name)) {
		return name + "__"
	}
	return name
}
