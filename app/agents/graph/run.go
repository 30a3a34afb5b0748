package graph

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"
)

// Run takes the state through the graph until END and returns the last state.
//
// On an error the state is the last good one: what the failed node was given.
// Errors are *CanceledError, *StepLimitError, *PanicError, *RouteError,
// *EntryError, *InterruptError, or what a node returned, wrapped with its name.
func (c *Compiled[S]) Run(ctx context.Context, state S, opts ...Option) (S, error) {
	o := options{from: START, maxSteps: DefaultMaxSteps, observe: func(context.Context, Event) {}}
	for _, opt := range opts {
		opt(&o)
	}
	node := o.from
	if _, ok := c.nodes[node]; !ok && node != START && node != END {
		return state, &EntryError{Graph: c.name, Node: node}
	}
	var err error
	if node == START {
		node, err = c.nextNode(ctx, state, START)
	}
	for step := 1; err == nil && node != END; step++ {
		switch {
		case ctx.Err() != nil:
			err = cancelError(ctx, node, nil)
		case step > o.maxSteps:
			err = &StepLimitError{Limit: o.maxSteps, Node: node}
		default:
			state, node, err = c.runStep(ctx, state, o.observe, Event{Node: node, Step: step})
		}
	}
	return state, err
}

// runStep runs the node of the event and returns the state and the node after it.
func (c *Compiled[S]) runStep(ctx context.Context, state S, observe Observer, e Event) (S, string, error) {
	observe(ctx, e)
	begin := time.Now()
	out, err := c.callNode(ctx, e.Node, state)
	if err == nil {
		state = out
		e.Next, err = c.nextNode(ctx, state, e.Node)
	}
	e.Finished, e.Duration, e.Err = true, time.Since(begin), err
	observe(ctx, e)
	return state, e.Next, err
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
