// Package slack makes a thread of Slack and a session one conversation: it brings what Slack
// sends into the session (Service), and posts to the thread what happens there (Outbox).
//
// # In
//
//	request or socket ──verify──▶ slack_inbox ──▶ acknowledged
//	                                   │
//	                            claimed by lease, in order per thread
//	                                   │
//	           names, markup, files, history ──▶ chat.Service ──▶ done
//
// The service acknowledges only what is stored, so a crash loses nothing; Slack repeats what was not acknowledged, and
// the inbox stores it once. Its workers handle the items: one thread's one after the other, in Slack's order. A message
// becomes a run whose client_message_id follows from its team, channel and ts, so an item that is handled again after a
// crash has no second effect.
//
// Run owns the goroutines, and waits for them.
//
// # Clients
//
// Clients has the client of each workspace: with slack.bot_token one, with slack.client_id that
// of the installation, whose sealed token is in the database. It is read again after a few
// seconds, so that every process learns of removed apps.
//
// # Out
//
// The outbox is the log of the session's events. The row of a thread has the number of the
// last event that is posted (sent_seq) and of the newest one (last_seq, written with the
// event). A process leases a thread that is behind, follows the session's events from
// sent_seq in order, and lets go of the thread when nothing happens any more: an idle thread
// costs no goroutine.
//
// Before a post is sent, its row says "sending", and the post carries the row's name in its
// metadata. When Slack's answer is lost, or the process dies before it stores the answer, the
// event with which Slack reports the post brings its ts. Without that event the thread is read
// once: the post is there, or it is sent again, or, if Slack does not say, its state is "unknown"
// and it is not repeated. An event that comes later still changes that to "sent".
//
// States of a post: pending → sending → sent → removed; sending → pending (Slack refused it for
// the moment, or does not have it), failed (Slack refused it), unknown; unknown → sent, or failed when
// somebody looks and it is not there; failed and unknown → pending when somebody wants it sent. A purge makes
// sent and unknown ones purged or gone.
package slack
