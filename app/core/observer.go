package core

import (
	"context"
	"time"
)

// Observer receives what happens in the parts of Bobbin, for metrics and traces (package
// telemetry). Its methods MUST NOT block. Those that return a context report the start of
// something, which continues with that context; ended is called exactly once.
type Observer interface {
	// Request reports the start of a request. Route is a template, empty for an unknown path;
	// ended gets the status of the response and whether it was an event stream.
	Request(ctx context.Context, method, route string, header map[string][]string) (_ context.Context, ended func(status int, stream bool))
	// Stream reports the start of an event stream; ended gets its outcome: ended, gone, slow or
	// failed.
	Stream() (ended func(outcome string))

	// Accepted reports a run in the context of the request that asked for it, before this
	// process starts it.
	Accepted(ctx context.Context, run Run)
	// Run reports an execution of a run; ended gets the result and the code of a failed run's
	// error.
	Run(ctx context.Context, run Run) (_ context.Context, ended func(status, code string))
	// Node reports a node of the run's graph.
	Node(ctx context.Context, name string) (_ context.Context, ended func(error))
	// Tool reports a tool call, by the name that the model used; ended gets its outcome.
	Tool(ctx context.Context, name, callID string) (_ context.Context, ended func(outcome string))

	// Renewed reports a renewal of leases; err = none was renewed.
	Renewed(kind WorkKind, renewed, lost int, err error)
	// TookOver reports work that was taken over from another process or an earlier one.
	TookOver(kind WorkKind, n int)
	// Found reports work that no signal announced: the sweep discovered it.
	Found(what string, n int)
	// Refused reports a write that came too late: another process owns the work.
	Refused(kind WorkKind)

	// FanOut reports the delay between an event and its arrival at a watcher, by the clocks of
	// both processes.
	FanOut(delay time.Duration)
	// Watching reports a watcher that begins; left is called once, with the error that ended it.
	Watching() (left func(err error))
	// Resync reports a watcher whose events are no longer available.
	Resync()
	// EventsFound reports how many durable events a watcher read from the store because the bus
	// had not delivered them.
	EventsFound(events int)

	// Delivery reports the result of an attempt at a delivery.
	Delivery(kind DeliveryKind, state DeliveryState)
	// SlackReceived reports what Slack sent: the type of an event, and what became of it.
	SlackReceived(kind, outcome string)
	// Retained reports a sweep of old data and what it removed.
	Retained(events, sessions int, err error)
}

// NoObserver is an Observer that does nothing. Embedded, it stands for the methods that an
// Observer does not have.
type NoObserver struct{}

var _ Observer = NoObserver{}

// ObserverOrNone returns the observer, or one that does nothing for nil.
func ObserverOrNone(o Observer) Observer {
	if o == nil {
		return NoObserver{}
	}
	return o
}

// Request does nothing.
func (NoObserver) Request(ctx context.Context, _, _ string, _ map[string][]string) (context.Context, func(int, bool)) {
	return ctx, func(int, bool) {}
}

// Stream does nothing.
func (NoObserver) Stream() func(string) { return func(string) {} }

// Accepted does nothing.
func (NoObserver) Accepted(context.Context, Run) {}

// Run does nothing.
func (NoObserver) Run(ctx context.Context, _ Run) (context.Context, func(status, code string)) {
	return ctx, func(string, string) {}
}

// Node does nothing.
func (NoObserver) Node(ctx context.Context, _ string) (context.Context, func(error)) {
	return ctx, func(error) {}
}

// Tool does nothing.
func (NoObserver) Tool(ctx context.Context, _, _ string) (context.Context, func(string)) {
	return ctx, func(string) {}
}

// Renewed does nothing.
func (NoObserver) Renewed(WorkKind, int, int, error) {}

// TookOver does nothing.
func (NoObserver) TookOver(WorkKind, int) {}

// Found does nothing.
func (NoObserver) Found(string, int) {}

// Refused does nothing.
func (NoObserver) Refused(WorkKind) {}

// FanOut does nothing.
func (NoObserver) FanOut(time.Duration) {}

// Watching does nothing.
func (NoObserver) Watching() func(error) { return func(error) {} }

// Resync does nothing.
func (NoObserver) Resync() {}

// EventsFound does nothing.
func (NoObserver) EventsFound(int) {}

// Delivery does nothing.
func (NoObserver) Delivery(DeliveryKind, DeliveryState) {}

// SlackReceived does nothing.
func (NoObserver) SlackReceived(string, string) {}

// Retained does nothing.
func (NoObserver) Retained(int, int, error) {}
