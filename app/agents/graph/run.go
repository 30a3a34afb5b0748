package graph

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
)

// Observer is told when a step starts, 1, 2, 3 … in the run, and gives the node its context; ended is
// called when the node and its router have ended, with the error that ends the run here. It is called
// in the run's goroutine, which waits for it.
type Observer func(ctx context.Context, node string, step int) (_ context.Context, ended func(err error))

// Run takes the state through the graph until END and returns the last state. It enters at most
// maxSteps nodes; observe may be nil.
//
// On an error the state is the last good one: what the failed node was given.
// Errors are *CanceledError, *StepLimitError, *PanicError, *RouteError,
// *InterruptError, or what a node returned, wrapped with its name.
func (c *Compiled[S]) Run(ctx context.Context, state S, maxSteps int, observe Observer) (S, error) {
	if observe == nil {
		observe = func(ctx context.Context, _ string, _ int) (context.Context, func(error)) { return ctx, func(error) {} }
	}
	node, err := c.nextNode(ctx, state, START)
	for step := 1; err == nil && node != END; step++ {
		switch {
		case ctx.Err() != nil:
			return state, cancelError(ctx, node, nil)
		case step > maxSteps:
			return state, &StepLimitError{Limit: maxSteps, Node: node}
		}
		nodeCtx, ended := observe(ctx, node, step)
		var out S
		if out, err = c.callNode(nodeCtx, node, state); err == nil {
			state = out
			node, err = c.nextNode(nodeCtx, state, node)
		}
		ended(err)
	}
	return state, err
}

// callNode runs one node, and makes its errors tell where they came from.
func (c *Compiled[S]) callNode(ctx context.Context, node string, state S) (out S, err error) {
	defer recoverPanic(node, &err)
	out, err = c.nodes[node](ctx, state)
	if err == nil {
		return out, nil
	}
	if i, ok := errors.AsType[interrupt](err); ok {
		return out, i.withNode(node)
	}
	if ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))) {
		return out, cancelError(ctx, node, err)
	}
	return out, fmt.Errorf("node %q: %w", node, err)
}

// nextNode returns what follows a node.
func (c *Compiled[S]) nextNode(ctx context.Context, state S, node string) (target string, err error) {
	exit := c.exits[node]
	if !exit.conditional {
		return exit.targets[0], nil
	}
	defer recoverPanic(node, &err)
	target = exit.router(ctx, state)
	if !slices.Contains(exit.targets, target) {
		return "", &RouteError{Node: node, Target: target, Targets: slices.Clone(exit.targets)}
	}
	return target, nil
}

// recoverPanic turns a panic into a PanicError. It must be deferred directly.
func recoverPanic(node string, err *error) {
	if value := recover(); value != nil {
		*err = &PanicError{Node: node, Value: value, Stack: debug.Stack()}
	}
}

// cancelError returns the error of a run whose context ended; err is what the node
// at work returned, nil if none was.
func cancelError(ctx context.Context, node string, err error) error {
	cause := context.Cause(ctx)
	errs := []error{cause, ctx.Err()}
	if err != nil {
		errs = append(errs, err)
	}
	return &CanceledError{Node: node, Cause: cause, errs: errs}
}
