// Package tools holds the tools of agents, one tool a file.
//
// Tools are built by New… functions; there is no global registry.
package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// Call is one call of a tool.
type Call struct {
	ID        string
	Arguments string         // raw JSON as the model wrote it, possibly malformed
	Session   core.Session   // of the call
	AskedAt   time.Time      // when the message that the run answers was created; zero = not known
	Shown     map[int64]bool // the messages that the prompt shows whole, by seq
	Settings  core.ToolSetting
}

// Custom is a function that a model may call, of the program or as a file describes it.
type Custom struct {
	Definition llm.ToolSpec
	Name       string            // the server's own, of a tool of MCP
	Approval   core.ApprovalMode // that holds unless a file says otherwise
	Repeatable bool              // a call may be repeated after a crash
	// Call executes a call; it is safe for concurrent use. The model reads an error as the call's result, so its text
	// must help the model to correct the call; it must not contain secrets.
	Call func(ctx context.Context, call Call) (string, error)
}

// builtIn returns a tool that changes nothing: a call may be repeated. Its arguments are checked against its schema, and
// errors show the model the example of them.
func builtIn[T any](spec llm.ToolSpec, example string, execute func(ctx context.Context, call Call, args T) (string, error)) *Custom {
	schema, err := CompileSchema(spec.Parameters)
	if err != nil {
		panic("tools: " + spec.Name + ": " + err.Error())
	}
	return &Custom{Definition: spec, Repeatable: true, Call: func(ctx context.Context, call Call) (string, error) {
		var args T
		_, err := ParseChecked(call.Arguments, schema)
		if err == nil && strings.TrimSpace(call.Arguments) != "" {
			err = json.Unmarshal([]byte(call.Arguments), &args)
		}
		if err != nil {
			return "", fmt.Errorf("%w; expected a JSON object such as %s", err, example)
		}
		return execute(ctx, call, args)
	}}
}

// Listing is the tools of a definition at one moment. It never changes.
type Listing struct {
	Tools   []*Custom // sorted by name
	Hash    string    // of what the model is told of them
	Problem string    // why tools are missing; empty = none are
	Notes   []string  // on tools that were left out or changed
}

// Source provides the tools of one definition. They may change. Safe for concurrent use.
type Source interface {
	// Listing returns the tools that there are now.
	Listing() Listing
	// Run keeps the tools current until ctx ends.
	Run(ctx context.Context)
	// Tried is closed when the first attempt to load the tools has ended.
	Tried() <-chan struct{}
	// Accept lets tools loosen that do so only when an operator has them read again.
	Accept()
}

// Listed is what sources have in common, and itself a Source whose tools never change. Safe for concurrent use.
type Listed struct {
	now   atomic.Pointer[Listing]
	tried chan struct{}
	once  sync.Once // closes tried
}

// NewListed returns a Listed that has no tools yet, for the reason.
func NewListed(reason string) *Listed {
	l := &Listed{tried: make(chan struct{})}
	l.now.Store(&Listing{Problem: reason})
	return l
}

// FixedSource returns the source of tools that never change.
func FixedSource(list ...*Custom) Source {
	l := NewListed("")
	l.Set(NewListing(list))
	return l
}

// Set replaces the listing: an attempt to load the tools has ended.
func (l *Listed) Set(listing Listing) {
	l.now.Store(&listing)
	l.once.Do(func() { close(l.tried) })
}

// Listing returns the tools of the last Set.
func (l *Listed) Listing() Listing { return *l.now.Load() }

// Tried is closed by the first Set.
func (l *Listed) Tried() <-chan struct{} { return l.tried }

// Run does nothing.
func (*Listed) Run(context.Context) {}

// Accept does nothing.
func (*Listed) Accept() {}
