package graph

import (
	"context"
	"time"
)

// DefaultMaxSteps is the step limit of a run that sets none.
const DefaultMaxSteps = 100

// Option changes one run.
type Option func(*options)

type options struct {
	from     string
	maxSteps int
	observe  Observer
}

// From begins the run at a node instead of START. END is allowed: then there is
// nothing to do.
func From(node string) Option { return func(o *options) { o.from = node } }

// MaxSteps bounds how many nodes a run enters; below 1 means DefaultMaxSteps.
func MaxSteps(n int) Option {
	return func(o *options) {
		if n < 1 {
			n = DefaultMaxSteps
		}
		o.maxSteps = n
	}
}

// Observe has each step told to the observer, once when it starts and once when
// it is finished.
func Observe(observer Observer) Option {
	return func(o *options) {
		if observer != nil {
			o.observe = observer
		}
	}
}

// Observer is told what a run does. It is called in the run's goroutine, which
// waits for it.
type Observer func(ctx context.Context, event Event)

// Event is the start or the end of a step.
type Event struct {
	Node     string
	Step     int  // 1, 2, 3 … in the run
	Finished bool // false = it starts

	// What follows is set when the step is finished.

	Duration time.Duration // of the node and its router
	Err      error         // why the run ends here; nil = it does not
	Next     string        // the node that follows, or END; empty with Err
}
