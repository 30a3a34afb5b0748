package graph

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

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
