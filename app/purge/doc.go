// Package purge permanently removes sessions and users.
//
// # Guarantees
//
// A purged session is gone with its messages, runs, events, summaries, tool executions, search
// entries, with the blobs that no other session refers to, and with the responses kept for
// repeated requests. The usage records stay: which models were called and what they cost,
// without session, run or user.
//
// A purged user has no session, no memory and no usage record. What the user wrote in sessions
// of others is emptied in place, together with the answers to it and the summaries that covered
// it; quotations by others cannot be known.
//
// Every report compares two searches, before and after the work: Left is the result of the second one.
//
// # Deletions
//
// What operators and callers of the API request is a Deletion, a row that
// one process at a time works on. An operator's request waits for it:
//
//	pending ──Claim──▶ running ──Finish──▶ succeeded
//	   ▲                  │
//	   └──Retry───────────┘ an attempt failed, or its process died and the lease lapsed
//
// The first attempt counts what exists (DeletionPlan), so that the last one can report what all of them removed, and find
// kept responses that mention it. During an attempt a goroutine renews the lease and counts what is left; the attempt ends
// when its lease is lost. The row holds the name of the user until it is done.
//
// With Compact the bytes that an operator removed are also taken out of the database's files: see db.DB.Compact
// for its cost, and for what it cannot reach (a write-ahead log, backups, replicas).
//
// # Retention
//
// Run also removes data whose retention has ended: durable events, and archived
// sessions. The newest event of a session always stays, so that its numbers continue. A client
// that reconnects with the number of a removed event reloads the messages (resync): events only
// repeat what messages, runs and summaries hold. An archived session with an unfinished run
// stays until the run has ended.
//
// One goroutine sweeps every hour, in small steps with a pause between them: each
// is one short transaction, so that other writers can proceed in between on SQLite. Any number
// of processes may sweep one database concurrently; each skips what another one holds. Times
// are the database's. An interrupted sweep starts over.
package purge
