// Package purge is the operator's removal of sessions and of users, for good.
//
// # What is promised
//
// A session that was purged is gone with its messages, runs, events, summaries,
// tool executions, search entries, with the blobs that no other session refers to,
// and with the answers that were kept for repeated requests. The books stay: what
// the models were called for and what it cost, without session, run or user.
//
// A user who was purged has no session, no memory and no line in the books. What
// the user wrote in sessions of others is emptied in its place, with the answers to
// it and the summaries that covered it; quotations by others cannot be known.
//
// Every report counts everything anew after the work: Left is a search, not a sum.
// A purge that was cut off is simply done again.
//
// With Compact the removed bytes are taken out of the database's files, too: see
// db.DB.Compact for what that takes, and for what lies outside of it (a write-ahead
// log, backups, replicas).
package purge
