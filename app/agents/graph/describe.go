package graph

import (
	"fmt"
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
			view.Edges = append(view.Edges, core.GraphEdge{Source: from.ID, Target: to, Conditional: exit.router != nil})
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
	for _, n := range d.Nodes { // a name alone is its label too
		switch n.ID {
		case START:
			b.WriteString("    " + START + "([\"START\"])\n")
		case END:
			b.WriteString("    " + END + "([\"END\"])\n")
		default:
			b.WriteString("    " + n.ID + "\n")
		}
	}
	for _, e := range d.Edges {
		arrow := "-->"
		if e.Conditional {
			arrow = "-.->"
		}
		fmt.Fprintf(&b, "    %s %s %s\n", e.Source, arrow, e.Target)
	}
	return b.String()
}
