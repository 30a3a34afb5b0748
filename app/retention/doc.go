// Package retention removes what was kept long enough: durable events, and sessions
// that were archived.
//
// # What is promised
//
// Of the events of a session the newest one always stays, so that its numbers go on. A
// client that comes back with the number of an event that is gone is told to load the
// messages (resync): events only show what messages, runs and summaries hold.
//
// An archived session goes as a purge takes it (package purge), with everything that
// belongs to it; one whose run has not ended is left until it has.
//
// # Who owns what
//
// Run is the only goroutine. It works in small steps with a pause between them: each is
// one short transaction, so that on SQLite other writers come in between. Any number of
// processes may sweep one database at once; what one of them holds the others pass by.
// Times are the database's. A sweep that was cut off begins anew.
package retention
