package graph

import (
	"fmt"
	"strings"
)

// StepLimitError says that a run would have taken more steps than allowed.
type StepLimitError struct {
	Limit int
	Node  string // which would have been next
}

// Error says how many steps there were.
func (e *StepLimitError) Error() string {
	return fmt.Sprintf("the step limit of %d was reached before node %q", e.Limit, e.Node)
}

// CanceledError says that the context of a run ended. errors.Is finds its cause
// (context.Cause), ctx.Err(), and what the node at work returned.
type CanceledError struct {
	Node  string // which would have been next, or was at work
	Cause error  // context.Cause of the run's context
	errs  []error
}

// Error says where the run was and why it ended.
func (e *CanceledError) Error() string {
	return fmt.Sprintf("canceled at node %q: %v", e.Node, e.Cause)
}

// Unwrap returns the cause and what else is known.
func (e *CanceledError) Unwrap() []error { return e.errs }

// PanicError is a panic in a node or its router. The stack is for the log; the
// message does not hold it.
type PanicError struct {
	Node  string // START for the router of the conditional edge from START
	Value any    // what was given to panic
	Stack []byte
}

// Error says which node panicked, with what.
func (e *PanicError) Error() string {
	return fmt.Sprintf("node %q panicked: %v", e.Node, e.Value)
}

// StackTrace returns the stack, for whoever logs the error without knowing graphs.
func (e *PanicError) StackTrace() []byte { return e.Stack }

// Unwrap returns the value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// RouteError says that a router answered something that its conditional edge does
// not declare.
type RouteError struct {
	Node    string // whose edge it is, or START
	Target  string // what the router answered
	Targets []string
}

// Error says what came and what was expected.
func (e *RouteError) Error() string {
	shown := make([]string, len(e.Targets))
	for i, target := range e.Targets {
		shown[i] = displayName(target)
	}
	return fmt.Sprintf("the router of %s answered %q, which is not among its targets: %s", displayName(e.Node), e.Target, strings.Join(shown, ", "))
}

// InterruptError says that a node wants something from outside before it goes on.
type InterruptError[V any] struct {
	Node  string // which interrupted; set by Run
	Value V      // what it asks for
}

// Error names the node.
func (e *InterruptError[V]) Error() string {
	return fmt.Sprintf("node %q interrupted the run", e.Node)
}

// Interrupt returns the error by which a node ends its run for now. Run answers
// with an *InterruptError[V] that names the node, and the state as the node got
// it. Get the value back with
//
//	if interrupt, ok := errors.AsType[*graph.InterruptError[Question]](err); ok {
func Interrupt[V any](value V) error {
	return &InterruptError[V]{Value: value}
}

// interrupt is an InterruptError of any value.
type interrupt interface {
	error
	withNode(node string) error
}

// withNode returns a copy that names the node: the original may be shared.
func (e *InterruptError[V]) withNode(node string) error {
	return &InterruptError[V]{Node: node, Value: e.Value}
}
