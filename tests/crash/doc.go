// Package crash kills running Bobbins, processes of their own, with SIGKILL, and breaks everything
// around them, and looks whether what was promised is there: with one process on either database
// (TestKilledAtRandomMoments and those of single steps), and with Slack.
//
// TestFaults runs three Bobbins on one PostgreSQL, joined by their
// own NATS cluster, breaks everything around them at random while people talk through
// them, and looks in the end whether what was promised is there.
//
// What is broken, several at a time, by a seeded schedule:
//
//	kill       a replica is killed with SIGKILL, and started again soon, or after its leases passed
//	stop       a replica gets SIGTERM and is started again
//	freeze     a replica stands still for a while and goes on, at times when others have its runs
//	database   PostgreSQL is stopped, fast or immediate, and started again
//	cut        connections of one replica to the database break, and new ones are refused
//	stall      the same connections carry nothing for a while, then go on or break
//	route      the same two faults between two nodes of the NATS cluster
//	model      429, 500, an answer that breaks off, one that hangs, one that is slow
//	clients    connections break in the middle of anything; who comes back goes to any replica
//
// People send messages by every surface, repeat them with the same Idempotency-Key when
// the answer is lost, cancel, interrupt, and use tools. Two watch each session. The
// checker knows every message that was sent. At the end, with all faults off, it wants:
//
//   - every accepted message once in the log, answered once, or marked failed (by the
//     model alone) or canceled; nothing that was not sent; no tool call without a result
//   - events that have no gap and no repetition for any watcher, and are those stored;
//     texts on their way that are the beginning of their message, or are taken back
//   - summaries that go on where the one before ends
//   - no session that stands still: a new message to each is answered
//
// `make fault` runs it for 30 minutes with 200 sessions, make explore for some seconds, CI not at
// all. BOBBIN_TEST_SEED repeats the schedule and the people's choices, but not the timing; other
// variables of the environment:
//
//	BOBBIN_CRASH_KILLS     how often each database's Bobbin is killed at random
//	BOBBIN_FAULT_TIME      how long faults go on, such as 30m; default 12s
//	BOBBIN_FAULT_SESSIONS  sessions; default 10
//	BOBBIN_FAULT_KEEP      a folder to keep the replicas' logs in
package crash
