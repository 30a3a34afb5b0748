// Package tools holds the tools of agents, one tool a file.
//
// Tools are built by New… functions; there is no global registry.
package tools

import (
	"context"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// Tool is a function that a model may call. Implementations are safe for
// concurrent use.
type Tool interface {
	// Spec returns the definition for the model.
	Spec() llm.ToolSpec
	// Idempotent reports whether a call may be repeated after a crash.
	Idempotent() bool
	// Call executes a call. The model reads an error as the call's result, so its text
	// must help the model to correct the call; it must not contain secrets.
	Call(ctx context.Context, call Call) (string, error)
}

// Call is one call of a tool.
type Call struct {
	ID        string
	Arguments string         // raw JSON as the model wrote it, possibly malformed
	Session   core.Session   // of the call
	AskedAt   time.Time      // when the message that the run answers was created; zero = not known
	Shown     map[int64]bool // the messages that the prompt shows whole, by seq
	Settings  core.ToolSetting
}
