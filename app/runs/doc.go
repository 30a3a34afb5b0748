// Package runs executes runs, writes the ends that the engine cannot write, and takes over
// runs whose processes died.
//
//	queued ──claim──▶ running ──▶ succeeded   (the engine writes it, with the answer)
//	   │   ▲            │ │ └────▶ failed     (Service writes it, with the reason)
//	   │   └─ waiting ◀─┘ │                   (the engine writes it: a tool call needs approval)
//	   └──cancel──▶ canceled ◀──┘             (Service writes it, with the partial answer)
//
// A waiting run has no lease and no goroutine. A decision queues it again, and so do the expiry
// of an approval (the sweep) and a cancel; the process that claims it continues it or writes
// its end.
//
// The runs row is authoritative: its lease says which process executes the run, its attempt
// fences every write. If the lease or the attempt is lost, another process executes the run, so
// this one stops silently. The end of a run claims the session's next one; a sweep finds what a
// crash left over.
//
// # Slots
//
// A process claims only work for which it has a free slot (Limits.Concurrent). A message that
// arrives while all slots are taken is accepted as queued, and the first process with a free
// slot claims its run: this one when a run ends, or another one that receives the signal. When
// more work waits than slots are free, the run that has waited longest is next, in any session.
//
// # Goroutines
//
// Service.Run is one blocking call with three intervals: a heartbeat renews the leases and
// reads cancels that arrived in other processes (10 s); a sweep takes over runs whose lease has
// lapsed, expires approvals, and claims for sessions that wait (2 s, and on request: a slot
// became free that work waits for, or another process released work); drafts are saved (1 s).
// Each run has one goroutine, started by launchRun and waited for by Run; it alone calls the
// engine and writes the run's end. Journal is called from the goroutines of runs and has none
// of its own.
//
// # Stopping
//
// When the context of Run ends, nothing new begins. Active runs have the grace period to
// finish; then they are handed back: they are interrupted but not ended, their leases are
// released, and they continue in another process or after the restart.
//
// # After a crash
//
// A run whose process died is executed again: by its restart immediately, by others when
// db.ReplicaName has ended its lease (PostgreSQL: 2 s) or it has lapsed, as soon as one has a
// free slot. The engine continues where the log ends. The draft of an interrupted message is retracted with message.discarded, even if none
// of it was saved: core.Run.DraftID gives the message's id. If the run was to be canceled, the
// saved part is kept as its answer.
//
// While the database is unavailable no process can renew a lease. After a pause in its responses
// that is longer than a heartbeat, a process therefore waits for the time of one lease before it
// takes over lapsed runs of others: by then each living process has renewed its own. The same
// applies if it cannot write a lease (a table can be locked and still be read), to a process that
// was suspended, and for two heartbeats to one that has just started.
// Runs that were handed back or requeued, and those of earlier starts of the same replica, are
// taken over without this delay.
//
// # A run that kills its process
//
// Some runs kill the process that executes them: they need more memory than there is, or hit a
// fault that cannot be recovered. Each take-over from a process that neither ended the run nor
// released it counts as a death of the run (core.Run.Deaths). Other runs of the process die with
// it, so a single death proves nothing. The more deaths a run has, the fewer others execute
// beside it:
//
//	deaths
//	0, 1   it executes like any other
//	2      it shares suspectSlots with others that died twice; the others execute beside them
//	3      it executes alone: one such run in a process, and nothing begins until it has ended
//	4      it fails with gave_up, and the user may retry it
//
// Only a run that executed alone can get its fourth death. Before it begins, the process
// executes nothing for quietTime; a process that dies before that, such as one that cannot
// start, does not count against the run. A run that kills its process thus kills four processes,
// and costs other runs nothing but time.
//
// Deaths are neither attempts nor give-backs: decisions, orderly stops and an unavailable
// database do not count. A run that reaches a wait for a decision starts again from zero deaths.
package runs
