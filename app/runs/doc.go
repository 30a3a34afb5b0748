// Package runs keeps runs alive: it executes them, ends them when nobody else
// can, and finds those that were left behind.
//
//	queued ──claim──▶ running ──▶ succeeded   (the engine writes it, with the answer)
//	   │   ▲            │ │ └────▶ failed     (Service writes it, with the reason)
//	   │   └─ waiting ◀─┘ │                   (the engine writes it: a person must approve a tool)
//	   └──cancel──▶ canceled ◀──┘             (Service writes it, with what was said so far)
//
// A waiting run has no lease and no goroutine. A decision, also that nobody decided in
// time (the sweep), queues it again, and so does a cancel: whoever claims it goes on
// with it, or writes its end.
//
// The runs row is the truth: its lease says who executes, its attempt fences
// every write. A lease or attempt that was lost means that somebody else
// executes the run, so this process stops without a word. The end of a run
// claims the session's next one; a sweep finds what a crash left over.
//
// # Who owns what
//
// Service.Run is one blocking call with three clocks: a heartbeat renews the
// leases and looks for cancels that came in elsewhere (10 s), a sweep takes over
// runs whose lease has passed, closes questions that are too old, and claims for
// sessions that wait (4 s), and what
// runs have said so far is saved (1 s). Each run has one goroutine, started by
// Start and waited for by Run; it alone calls the engine and writes the run's
// end. Journal is called from the goroutines of runs and has none of its own.
//
// # Stopping
//
// When the context of Run ends, nothing new begins and runs that wait for a slot
// are given back at once. Those at work have the grace period to finish; then
// they are canceled and given back too: they are not ended, their leases are
// released, and they go on in another process or after the restart.
//
// # After a crash
//
// A run whose process died is executed again, by its restart at once, by others
// when its lease has passed. The engine continues where the log ends. Text of a
// message that was on its way is taken back with message.discarded, also if
// nothing of it was saved: core.Run.DraftID tells the message's id. If the run was
// to be canceled, what was saved is kept as its answer.
package runs
