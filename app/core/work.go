package core

import "time"

// WorkKind is a kind of work that one process at a time does, by a lease in the
// database. A kind of delivery is one too: WorkKind(DeliveryWebhook).
type WorkKind string

// The kinds of work, besides deliveries.
const (
	WorkRun     WorkKind = "run"
	WorkSummary WorkKind = "summary"
)

// Grant is what came of asking for a lease.
type Grant int

// The answers to somebody who asks for a lease.
const (
	GrantRefused   Grant = iota // another one has it
	GrantGiven                  // nobody had it, or the asker himself
	GrantTakenOver              // another one had it, and let its time pass
)

// OK reports whether the asker has the lease.
func (g Grant) OK() bool { return g != GrantRefused }

// QueueStats is what waits for its turn, in the whole database.
type QueueStats struct {
	Queued int
	Oldest time.Duration // since the oldest of them was accepted
}
