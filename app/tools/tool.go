// Package tools holds what agents can do besides talking: one tool a file.
//
// Tools are built by New… functions and put together in app.go; there is no
// global registry.
package tools

import (
	"context"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// Tool is something that a model may call. Implementations are safe for
// concurrent use.
type Tool interface {
	// Spec tells the model what the tool is and takes.
	Spec() llm.ToolSpec
	// Idempotent reports whether a call may be repeated after a crash.
	Idempotent() bool
	// Call does it. An error goes back to the model as the call's result, so its
	// text must help the model to do better; it must not hold secrets.
	Call(ctx context.Context, call Call) (string, error)
}

// Call is one call of a tool.
type Call struct {
	ID        string
	Arguments string       // raw JSON as the model wrote it, possibly malformed
	Session   core.Session // in which the call happens
	Settings  core.ToolSetting
}

// Configurable is a Tool that has settings of its own in agents' files, besides
// timeout and max_output_bytes, which all have.
type Configurable interface {
	Tool
	// Settings returns the names of the fields of core.ToolSetting that it reads.
	Settings() []string
}
