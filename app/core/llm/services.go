package llm

import (
	"context"

	"bobbin/app/core"
)

// Models finds language models by name; an empty name is the default model.
type Models interface {
	Get(name string) (Model, error)
	// Preferred returns the model of the same provider that does background work for
	// conversations with the named model; false = the named model does it itself.
	Preferred(name string, p Preference) (Model, bool)
}

// Budget returns why the model may not be called for the owner now: what may be spent is spent.
type Budget func(ctx context.Context, owner string, model Info) error

// TokenCounter counts everything that prompts are made of, in cl100k_base.
type TokenCounter interface {
	core.TextCounter
	Message(m core.Message) int
	Tools(list []ToolSpec) int
}
