// Package handlers answers the requests of the native API: it reads a request, calls
// one service or repository, and writes the result as JSON or as an event stream.
// One noun, one file.
//
// An operation is a function of a context, a tenant and a request, in the row that binds it to its
// route; bind reads the request and writes the answer. What streams or sends files is a
// func(*gin.Context) error, which writes an answer or returns an error, never both; package api turns
// errors into problems. Writes go through the chat service, reads may go to the repositories directly.
// Bodies are read strictly: unknown fields are refused by name, because a misspelled field that is
// silently ignored costs its sender more than an error does.
//
// A stream or a waiting request only listens: when it ends, the run continues.
//
// # Server-sent events
//
// A frame has `id:` (of durable events: the event's number in its session; of resync: the
// number after which the stream continues), `event:` and `data:`, the event's data preceded
// by session_id, run_id and at. Each frame is flushed immediately and has its own deadline,
// so that a reader who does not read is disconnected and holds no resources. Comment lines
// keep idle connections open through proxies.
//
// ServeEvents ranges over the events in its caller's goroutine; a timer writes the comments, so
// that an idle stream has no further goroutine.
package handlers
