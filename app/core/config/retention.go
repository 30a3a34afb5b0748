package config

import "time"

// Retention is how long things are kept that could be removed; 0 = for ever.
type Retention struct {
	Events           time.Duration // durable events; the newest of each session stays
	ArchivedSessions time.Duration // after they were archived
}

// leastRetention is longer than clients wait before they come back, and than a message
// waits for its answer.
const leastRetention = time.Hour

func retentionKeys() []setting {
	return []setting{
		{name: "retention.events", meaning: "how long the events of sessions are kept, from which a reconnecting client gets what it missed; later it is told to reload the messages; `0s`: forever", field: func(c *Config) any { return &c.Retention.Events }},
		{name: "retention.archived_sessions", meaning: "how long after archiving sessions are permanently removed, as by `bobbin sessions purge`; `0s`: never", field: func(c *Config) any { return &c.Retention.ArchivedSessions }},
	}
}

func (r Retention) validate(found *faults) {
	for _, kept := range []struct {
		key   string
		value time.Duration
	}{{"events", r.Events}, {"archived_sessions", r.ArchivedSessions}} {
		found.checkKey(kept.value == 0 || kept.value >= leastRetention, "retention."+kept.key, "%s is too short; use 1h or more, or 0s (for ever)", kept.value)
	}
}
