// Package events tells listeners what happens in a session: everything, once,
// in order, from where they left off.
//
//	a run's goroutine                          a reader (SSE, Wait, Slack)
//	─────────────────                          ───────────────────────────
//	commit ─▶ store ◀──── replay, holes ─────── Watch
//	  │                                          ▲  ▲
//	  ├─ Publish ─▶ Bus ─────── live ────────────┘  │
//	  └─ Delta ─┬─▶ Bus                             │
//	            └─▶ text so far ──── snapshot ──────┘
//
// Durable events are numbered 1, 2, 3 … in their session by the transaction
// that wrote them, and are published after its commit. The store is the
// authority and the bus only a hint: a watcher that sees a hole in the numbers,
// or nothing for a while, reads what it misses from the store. So a lost, late
// or re-ordered bus message costs a read, never an event.
//
// Passing events (the text of a message on its way, the steps of the graph)
// have no number and are not stored. The text so far of every message on its
// way is kept in memory, so that a watcher that joins in the middle gets all of
// it first; a delta carries its byte offset, by which overlaps are cut off.
// When the message is finished, message.created holds the whole text.
//
// # Who owns what
//
// There are no goroutines here, but for a moment that of a look into the store for
// many watchers at once (lookout). Publish and Delta run in the goroutine of the
// run and never wait for a listener. Watch runs in the goroutine of its reader:
// leaving the loop is all the cleaning up there is. A reader that cannot keep
// up is dropped with ErrSlow and comes back with the last number it has.
//
// # After a crash
//
// Durable events are in the store and are replayed. The text so far is lost
// with the process; the run's next attempt writes a new message.
package events
