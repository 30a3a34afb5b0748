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

	// Count adds n to a counter, whose labels have these values, in the order of its comment.
	Count(counter Counter, n int, labels ...string)
	// FanOut reports the delay between an event and its arrival at a watcher, by the clocks of
	// both processes.
	FanOut(delay time.Duration)
	// Watching reports a watcher that begins; left is called once, with the error that ended it.
	Watching() (left func(err error))
}

// Counter is a counter of what needs no start and no end, by the name of its metric.
type Counter string

// The counters, with their labels.
const (
	CountRenewals    Counter = "lease_renewals_total"    // kind, outcome: renewed, lost or failed
	CountTakeovers   Counter = "takeovers_total"         // kind: of work that another process had, or an earlier one
	CountFound       Counter = "sweep_finds_total"       // work that no signal announced: the sweep discovered it
	CountFenced      Counter = "fenced_writes_total"     // kind: of writes that came too late, as another process owns the work
	CountResyncs     Counter = "event_resyncs_total"     // none: watchers whose events are no longer available
	CountEventsFound Counter = "events_found_total"      // none: durable events that a watcher read as the bus had not delivered them
	CountDeliveries  Counter = "delivery_tries_total"    // kind, state after the attempt
	CountSlack       Counter = "slack_received_total"    // type of what Slack sent, outcome
	CountRemoved     Counter = "retention_removed_total" // kind: events or sessions
	CountSweeps      Counter = "retention_sweeps_total"  // outcome of a sweep of old data: done or failed

	CountChecks   Counter = "context_coverage_checks_total"  // none: that each message is covered by the summary or after it
	CountLost     Counter = "context_lost_messages_total"    // none: messages that are neither
	CountWarnings Counter = "context_warnings_total"         // model
	CountDropped  Counter = "context_thoughts_dropped_total" // model, reason
	CountNative   Counter = "context_native_summaries_total" // model, outcome
)

// The kinds of work that one process at a time does, by a lease in the database, besides deliveries.
const (
	WorkRun     = "run"
	WorkSummary = "summary"
)

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

// Count does nothing.
func (NoObserver) Count(Counter, int, ...string) {}

// FanOut does nothing.
func (NoObserver) FanOut(time.Duration) {}

// Watching does nothing.
func (NoObserver) Watching() func(error) { return func(error) {} }
