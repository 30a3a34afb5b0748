package graph

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// checker gathers the faults of one graph.
type checker[S any] struct {
	graph  *Graph[S]
	names  map[string]bool              // declared nodes, apart from reserved names
	exits  map[string][]declaredEdge[S] // by source
	faults []error
}

// check returns every fault of the graph, joined, or nil.
func (g *Graph[S]) check() error {
	c := &checker[S]{graph: g, names: map[string]bool{}, exits: map[string][]declaredEdge[S]{}}
	c.checkNodes()
	c.checkEdges()
	if len(c.exits[START]) == 0 {
		c.addFault("no edge leads out of START: say where to begin")
	}
	for _, from := range c.sourceNodes() {
		if n := len(c.exits[from]); n > 1 { // the next node is not clear
			c.addFault("%s has %d edges: one conditional edge chooses among targets", displayName(from), n)
		}
	}
	c.checkPaths()
	return errors.Join(c.faults...)
}

func (c *checker[S]) addFault(format string, args ...any) {
	c.faults = append(c.faults, fmt.Errorf("graph %q: %s", c.graph.name, fmt.Sprintf(format, args...)))
}

func (c *checker[S]) checkNodes() {
	if len(c.graph.nodes) == 0 {
		c.addFault("there are no nodes")
	}
	for _, n := range c.graph.nodes {
		switch {
		case !validName(n.name):
			c.addFault("node %q: a name consists of letters, digits and \"_\", begins with a letter, and does not end with \"__\"", n.name)
		case c.names[n.name]:
			c.addFault("node %q is declared twice", n.name)
		}
		if n.node == nil {
			c.addFault("node %q has no function", n.name)
		}
		c.names[n.name] = n.name != START && n.name != END
	}
}

// validName reports whether a name can be drawn and logged as it is. Names with
// "__" at an end are kept for START, END and the drawing.
func validName(name string) bool {
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r != '_' && (r < '0' || r > '9')) {
			return false
		}
	}
	return name != "" && !strings.HasSuffix(name, "__")
}

func (c *checker[S]) checkEdges() {
	for _, e := range c.graph.edges {
		c.exits[e.from] = append(c.exits[e.from], e)
		if e.from != START && !c.names[e.from] {
			c.addFault("an edge leads out of %s, which is not a node", displayName(e.from))
		}
		if e.conditional && (e.router == nil || len(e.targets) == 0) {
			c.addFault("the conditional edge from %s has no router or no targets", displayName(e.from))
		}
		for _, to := range e.targets {
			if to != END && !c.names[to] {
				c.addFault("an edge leads from %s to %s, which is not a node", displayName(e.from), displayName(to))
			}
		}
	}
}

// sourceNodes returns START and the nodes in their order.
func (c *checker[S]) sourceNodes() []string {
	sources := []string{START}
	for _, n := range c.graph.nodes {
		if c.names[n.name] && !slices.Contains(sources, n.name) {
			sources = append(sources, n.name)
		}
	}
	return sources
}

// checkPaths finds nodes that no path from START enters, and nodes from which no
// path leads to END. What follows from a fault told before is not told again.
func (c *checker[S]) checkPaths() {
	reached := map[string]bool{START: true}
	for todo := []string{START}; len(todo) > 0; todo = todo[1:] {
		for _, e := range c.exits[todo[0]] {
			for _, to := range e.targets {
				if !reached[to] {
					reached[to] = true
					todo = append(todo, to)
				}
			}
		}
	}
	ending := map[string]bool{} // from where END can be reached; a target that is not a node counts as a way
	leads := func(to string) bool { return ending[to] || !c.names[to] }
	for grown := true; grown; {
		grown = false
		for _, e := range c.graph.edges {
			if !ending[e.from] && slices.ContainsFunc(e.targets, leads) {
				ending[e.from], grown = true, true
			}
		}
	}
	for _, name := range c.sourceNodes()[1:] {
		if len(c.exits[START]) > 0 && !reached[name] {
			c.addFault("node %q is unreachable: no path from START leads to it", name)
		}
		switch {
		case len(c.exits[name]) == 0:
			c.addFault("node %q has no way to END: no edge leads out of it", name)
		case !ending[name]:
			c.addFault("node %q has no way to END: every path from it goes in circles", name)
		}
	}
}

// displayName returns a name as errors and drawings have it.
func displayName(name string) string {
	switch name {
	case START:
		return "START"
	case END:
		return "END"
	default:
		return fmt.Sprintf("%q", name)
	}
}
