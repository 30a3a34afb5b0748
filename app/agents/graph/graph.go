package graph

import (
	"context"
	"errors"
	"fmt"
)

// Where every run begins and ends. They are names in edges, never nodes.
const (
	START = "__start__"
	END   = "__end__"
)

// NodeFunc is one step of a graph: it reads the state, does its one thing, and
// returns the new state. It is safe for concurrent use.
type NodeFunc[S any] func(ctx context.Context, state S) (S, error)

// Router names the node that follows, or END. It must not block for long, and
// answers with one of the targets that its conditional edge declares.
type Router[S any] func(ctx context.Context, state S) string

// Graph is a graph that is being declared. Its methods return it, so that calls
// can be chained. Not safe for concurrent use.
type Graph[S any] struct {
	order []string // node names as declared
	nodes map[string]NodeFunc[S]
	edges []declaredEdge[S]
}

// declaredEdge leads from a node to one target, or with a router to one of many.
type declaredEdge[S any] struct {
	from    string
	targets []string
	router  Router[S] // nil = there is one target
}

// New returns an empty graph.
func New[S any]() *Graph[S] { return &Graph[S]{nodes: map[string]NodeFunc[S]{}} }

// Node declares a node. A name that consists of letters and "_" can be drawn.
func (g *Graph[S]) Node(name string, node NodeFunc[S]) *Graph[S] {
	g.order = append(g.order, name)
	g.nodes[name] = node
	return g
}

// Edge declares that to follows from, always. A node has one Edge or one
// ConditionalEdge.
func (g *Graph[S]) Edge(from, to string) *Graph[S] {
	g.edges = append(g.edges, declaredEdge[S]{from: from, targets: []string{to}})
	return g
}

// ConditionalEdge declares that router chooses which of the targets follows
// from. All targets are declared, so that Compile can check them and a drawing
// shows them.
func (g *Graph[S]) ConditionalEdge(from string, router Router[S], targets ...string) *Graph[S] {
	g.edges = append(g.edges, declaredEdge[S]{from: from, targets: targets, router: router})
	return g
}

// Compiled is a checked graph. It never changes and is safe for concurrent use.
type Compiled[S any] struct {
	order []string // node names as declared
	nodes map[string]NodeFunc[S]
	exits map[string]declaredEdge[S] // by source, START included
}

// Compile returns the graph, ready to run. Its error joins the faults: edges of what is no node,
// and nodes without an edge, or with two.
func (g *Graph[S]) Compile() (*Compiled[S], error) {
	c := &Compiled[S]{order: g.order, nodes: g.nodes, exits: map[string]declaredEdge[S]{}}
	var faults []error
	for _, e := range g.edges {
		for _, to := range e.targets {
			if to != END && g.nodes[to] == nil {
				faults = append(faults, fmt.Errorf("an edge leads from %q to %q, which is not a node", e.from, to))
			}
		}
		if _, twice := c.exits[e.from]; twice {
			faults = append(faults, fmt.Errorf("%q has two edges: one conditional edge chooses among targets", e.from))
		}
		c.exits[e.from] = e
	}
	for _, name := range append([]string{START}, g.order...) {
		if len(c.exits[name].targets) == 0 {
			faults = append(faults, fmt.Errorf("no edge leads out of %q", name))
		}
	}
	return c, errors.Join(faults...)
}
