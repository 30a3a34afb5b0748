package core

import (
	"strings"
	"time"
)

// RunLease is how long a run belongs to the process that claimed it, unless the process
// renews its lease.
const RunLease = 30 * time.Second

// LeaseResult is what came of asking for a lease.
type LeaseResult int

// The answers to somebody who asks for a lease.
const (
	GrantRefused   LeaseResult = iota // another one has it
	GrantGiven                        // nobody had it, or the asker himself
	GrantTakenOver                    // another one had it, and let its time pass
)

// OK reports whether the asker has the lease.
func (g LeaseResult) OK() bool { return g != GrantRefused }

// QueueStats is what waits for its turn, in the whole database.
type QueueStats struct {
	Queued int
	Oldest time.Duration // since the oldest of them was accepted
}

// NATSStats is the state of the connection between replicas, and what has happened to it.
type NATSStats struct {
	Connected  bool
	Routes     int    // connections to other replicas, of their own cluster
	Reconnects uint64 // to the server
	Slow       uint64 // times that messages arrived faster than they were read, and some were lost
	In, Out    uint64 // messages
}

// WorkersOf returns how the workers of the same replica begin, those of its earlier
// starts among them.
func WorkersOf(worker string) (prefix string) {
	if i := strings.LastIndexByte(worker, '/'); i >= 0 {
		return worker[:i+1]
	}
	return worker + "/"
}
