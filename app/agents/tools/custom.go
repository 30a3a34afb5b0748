package tools

import (
	"context"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// Custom is a tool that a file describes.
type Custom struct {
	Definition llm.ToolSpec
	Name       string            // the server's own, of a tool of MCP
	Approval   core.ApprovalMode // that holds unless a file says otherwise
	Repeatable bool              // see Tool.Idempotent
	Execute    func(ctx context.Context, call Call) (string, error)
}

// Spec returns the definition for the model.
func (c *Custom) Spec() llm.ToolSpec { return c.Definition }

// Idempotent reports whether a call may be repeated after a crash.
func (c *Custom) Idempotent() bool { return c.Repeatable }

// Call executes a call.
func (c *Custom) Call(ctx context.Context, call Call) (string, error) { return c.Execute(ctx, call) }

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
}

// Accepter is a Source whose tools loosen only when an operator has them read again.
type Accepter interface{ Accept() }

// fixed is a source whose tools never change.
type fixed struct {
	listing Listing
	tried   chan struct{}
}

// FixedSource returns the source of tools that never change.
func FixedSource(list ...*Custom) Source {
	f := fixed{listing: NewListing(list), tried: make(chan struct{})}
	close(f.tried)
	return f
}

// Listing returns the tools.
func (f fixed) Listing() Listing { return f.listing }

// Run does nothing.
func (fixed) Run(context.Context) {}

// Tried is closed.
func (f fixed) Tried() <-chan struct{} { return f.tried }
