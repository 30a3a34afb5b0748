package graph

import (
	"context"
	"slices"
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
// can be chained; faults are kept for Compile. Not safe for concurrent use.
type Graph[S any] struct {
	name  string
	nodes []declaredNode[S]
	edges []declaredEdge[S]
}

type declaredNode[S any] struct {
	name string
	node NodeFunc[S] // nil = a fault
}

// declaredEdge leads from a node to one target, or with a router to one of many.
type declaredEdge[S any] struct {
	from        string
	targets     []string
	conditional bool
	router      Router[S]
}

// New returns an empty graph. The name is for errors and logs.
func New[S any](name string) *Graph[S] {
	return &Graph[S]{name: name}
}

// Node declares a node. Names consist of letters, digits and "_", begin with a
// letter, and do not end with "__".
func (g *Graph[S]) Node(name string, node NodeFunc[S]) *Graph[S] {
	g.nodes = append(g.nodes, declaredNode[S]{name: name, node: node})
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
	g.edges = append(g.edges, declaredEdge[S]{from: from, targets: slices.Clone(targets), conditional: true, router: router})
	return g
}

// Compiled is a checked graph. It never changes and is safe for concurrent use.
type Compiled[S any] struct {
	name  string
	order []string // node names as declared
	nodes map[string]NodeFunc[S]
	exits map[string]declaredEdge[S] // by source, START included
}

// Compile returns the graph as it is now, ready to run. Its error joins every
// fault, a sentence each (errors.Join); later declarations do not change what
// was compiled before.
func (g *Graph[S]) Compile() (*Compiled[S], error) {
	if err := g.check(); err != nil {
		return nil, err
	}
	c := &Compiled[S]{name: g.name, nodes: map[string]NodeFunc[S]{}, exits: map[string]declaredEdge[S]{}}
	for _, n := range g.nodes {
		c.order = append(c.order, n.name)
		c.nodes[n.name] = n.node
	}
	for _, e := range g.edges {
		c.exits[e.from] = e
	}
	return c, nil
}
