// Package sse writes events as server-sent events.
//
// A frame has `id:` (durable events: the event's number in its session; resync: that
// after which it goes on),
// `event:` and `data:`, the event's data with session_id, run_id and at put
// before it. Each frame is flushed at once and under a deadline of its own, so
// that a reader who does not read is cut off and cannot hold on to anything. A
// comment line keeps proxies awake while nothing happens.
//
// Serve ranges over the events in its caller's goroutine; the comments are written by
// that of a timer, so that a stream on which nothing happens costs neither.
package sse
