// Package chat is the use cases of a conversation, the same for every surface:
// the HTTP API, Slack, the command line and the dialects of other clients.
//
// Every write goes through its Service, so that one set of rules holds: what may
// be said, by whom, how large, to which agent and model. Reads that need no rules
// go to storage directly. Errors are core's, with messages that may be shown.
//
//	Send ──▶ checks ──▶ Accept (committed: the message is never lost)
//	                      ├─ started: events ─▶ feed, the run ─▶ runs.Runner
//	                      └─ queued:  events ─▶ feed; the end of the run before claims it
//
// Nothing here keeps state that matters: requests only ask and listen, and when
// one goes away its run goes on.
package chat
