package graph

import (
	"fmt"
	"slices"
	"strings"

	"bobbin/app/core"
)

// Describe returns the shape of the graph; always the same for the same graph.
func (c *Compiled[S]) Describe() core.GraphView {
	view := core.GraphView{Nodes: []core.GraphNode{{ID: START}}}
	for _, name := range c.order {
		view.Nodes = append(view.Nodes, core.GraphNode{ID: name})
	}
	view.Nodes = append(view.Nodes, core.GraphNode{ID: END})
	for _, from := range view.Nodes {
		exit := c.exits[from.ID]
		for _, to := range exit.targets {
			view.Edges = append(view.Edges, core.GraphEdge{Source: from.ID, Target: to, Conditional: exit.conditional})
		}
	}
	return view
}

// Mermaid returns the graph as a Mermaid flowchart; conditional edges are dotted.
// Always the same for the same graph.
func (c *Compiled[S]) Mermaid() string {
	d := c.Describe()
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	for _, n := range d.Nodes {
		switch id := mermaidID(n.ID); { // a name alone is its label too
		case n.ID == START || n.ID == END:
			fmt.Fprintf(&b, "    %s([%q])\n", id, displayName(n.ID))
		case id != n.ID:
			fmt.Fprintf(&b, "    %s[%q]\n", id, n.ID)
		default:
			fmt.Fprintf(&b, "    %s\n", id)
		}
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
