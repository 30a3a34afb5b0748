package core

import "context"

// Publisher publishes committed events to the watchers of their sessions. Its methods
// MUST NOT fail, and MUST NOT wait for a watcher.
type Publisher interface {
	Publish(ctx context.Context, events []Event)
	// Delta publishes an event that is not stored.
	Delta(ctx context.Context, e Event)
}

// Wakeups wake other processes. They may be lost: whoever relies on them also sweeps.
type Wakeups interface {
	Send(ctx context.Context, signal Wakeup)
	// Listen passes the wakeups of other processes to handle until ctx ends.
	Listen(ctx context.Context, handle func(Wakeup))
}

// TextCounter counts the tokens of texts in cl100k_base.
type TextCounter interface {
	Text(s string) int
}

// AgentCatalog holds the configured agents.
type AgentCatalog interface {
	// Get returns ErrNotFound for an unknown agent.
	Get(name string) (Agent, error)
	List() []Agent
}
