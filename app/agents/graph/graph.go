package graph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"bobbin/app/core"
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

// Edge declares that to follows from, always. A node has one Edge or one ConditionalEdge.
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

// ErrStepLimit says that a run would have taken more steps than allowed.
var ErrStepLimit = errors.New("the step limit was reached")

// Observer is told when a step starts, 1, 2, 3 … in the run, and gives the node its context; ended is
// called when the node and its router have ended, with the error that ends the run here. It is called
// in the run's goroutine, which waits for it.
type Observer func(ctx context.Context, node string, step int) (_ context.Context, ended func(err error))

// Run takes the state through the graph until END and returns the last state. It enters at most
// maxSteps nodes; observe may be nil.
//
// On an error the state is the last good one: what the failed node was given.
// Errors are ErrStepLimit, the cause of ctx's end with ctx.Err(), that of a router which names
// no target of its edge, or what a node returned; all name the node.
func (c *Compiled[S]) Run(ctx context.Context, state S, maxSteps int, observe Observer) (S, error) {
	if observe == nil {
		observe = func(ctx context.Context, _ string, _ int) (context.Context, func(error)) { return ctx, func(error) {} }
	}
	node, err := c.nextNode(ctx, state, START)
	for step := 1; err == nil && node != END; step++ {
		switch {
		case ctx.Err() != nil:
			return state, fmt.Errorf("canceled at node %q: %w (%w)", node, context.Cause(ctx), ctx.Err())
		case step > maxSteps:
			return state, fmt.Errorf("%w before node %q", ErrStepLimit, node)
		}
		state, node, err = c.runStep(ctx, state, node, step, observe)
	}
	return state, err
}

// runStep runs a node and its router, and makes the node's errors tell where they came from.
func (c *Compiled[S]) runStep(ctx context.Context, state S, node string, step int, observe Observer) (_ S, next string, err error) {
	ctx, ended := observe(ctx, node, step)
	defer func() { ended(err) }() // after a panic, too
	out, err := c.nodes[node](ctx, state)
	switch {
	case err == nil:
		next, err = c.nextNode(ctx, out, node)
		return out, next, err
	case ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))):
		return state, "", fmt.Errorf("canceled at node %q: %w (%w)", node, context.Cause(ctx), err)
	}
	return state, "", fmt.Errorf("node %q: %w", node, err)
}

// nextNode returns what follows a node.
func (c *Compiled[S]) nextNode(ctx context.Context, state S, node string) (string, error) {
	exit := c.exits[node]
	if exit.router == nil {
		return exit.targets[0], nil
	}
	target := exit.router(ctx, state)
	if !slices.Contains(exit.targets, target) {
		return "", fmt.Errorf("the router of %q answered %q, which is not among its targets: %q", node, target, exit.targets)
	}
	return target, nil
}

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
