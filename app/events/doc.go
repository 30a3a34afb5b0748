// Package events delivers the events of a session to its watchers: every event, once, in order,
// from where they left off.
//
//	a run's goroutine                          a reader (SSE, Wait, Slack)
//	─────────────────                          ───────────────────────────
//	commit ─▶ store ◀──── replay, gaps ──────── Watch
//	  │                                          ▲  ▲
//	  ├─ Publish ─▶ Bus ─────── live ────────────┘  │
//	  └─ Delta ─┬─▶ Bus                             │
//	            └─▶ partial text ─── snapshot ──────┘
//
// Durable events are numbered 1, 2, 3 … within their session by the transaction that wrote them,
// and are published after its commit. The store is authoritative and the bus only a hint: a
// watcher that sees a gap in the numbers, or nothing for a while, reads from the store what it
// missed. So a lost, late or reordered bus message costs a read, never an event.
//
// Events are values that all watchers share and none changes. In the publishing process they are
// never encoded: NATS encodes them for other processes, which decode them once for all their
// watchers, and the first stream that shows an event encodes its frame for the others.
//
// Transient events (partial text, the steps of the graph) have no number and are not stored. The
// process that executes a run keeps its partial text in memory (Begin, End), so that a watcher that
// joins in the middle gets all of it first; a delta carries its byte offset, by which overlaps
// are removed. When the message is finished, message.created holds the whole text.
//
// # Goroutines
//
// The package starts no goroutines except for the short one of a store lookup shared by many
// watchers (batchedLookup). Publish and Delta run in the goroutine of the run and never wait for
// a listener. Watch runs in the goroutine of its reader: leaving the loop is all the cleanup
// there is. A reader that cannot keep up is dropped with ErrSlow and reconnects with the last
// number it has.
//
// # After a crash
//
// Durable events are in the store and are replayed. Partial text is lost with the process; the
// run's next attempt writes a new message.
package events
