package config

import "time"

// Retention is how long things are kept that could be removed; 0 = for ever.
type Retention struct {
	Events           time.Duration `key:"events"`            // durable events; the newest of each session stays
	ArchivedSessions time.Duration `key:"archived_sessions"` // after they were archived
}

// leastRetention is longer than clients wait before they come back, and than a message
// waits for its answer.
const leastRetention = time.Hour

func (r Retention) validate(found *faults) {
	for _, kept := range []struct {
		key   string
		value time.Duration
	}{{"events", r.Events}, {"archived_sessions", r.ArchivedSessions}} {
		found.checkKey(kept.value == 0 || kept.value >= leastRetention, "retention."+kept.key, "%s is too short; use 1h or more, or 0s (for ever)", kept.value)
	}
}
