package config

import "time"

// Retention is how long things are kept that could be removed; 0 = for ever. An hour is longer than
// clients wait before they come back, and than a message waits for its answer.
type Retention struct {
	Events           time.Duration `key:"events" range:"0|1h.."`            // durable events; the newest of each session stays
	ArchivedSessions time.Duration `key:"archived_sessions" range:"0|1h.."` // after they were archived
}
