// Package sse writes events as server-sent events.
//
// A frame has `id:` (durable events only: the event's number in its session),
// `event:` and `data:`, the event's data with session_id, run_id and at put
// before it. Each frame is flushed at once and under a deadline of its own, so
// that a reader who does not read is cut off and cannot hold on to anything. A
// comment line keeps proxies awake while nothing happens.
//
// Serve has two goroutines: the caller's owns the connection, the other one
// ranges over the events; Serve returns when both are done.
package sse
