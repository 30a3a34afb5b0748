// Package deliveries sends stored notifications to outside receivers: it claims what is due,
// lets the sender of its kind try, and stores the result.
//
//	pending ──claim──▶ (leased) ──▶ delivered
//	   ▲                  │  └────▶ failed     the receiver rejects it, or a day has passed
//	   └── 1 s … 1 h ─────┘
//
// A delivery is written in the transaction of the event it reports, so a crash loses none. If
// the process dies after sending and before storing the result, the delivery is sent again with
// the same id: a receiver may see it twice. Several processes claim different deliveries, by
// leases based on the database's clock. The deliveries of a dead process become available when
// their leases have lapsed, or immediately by its restart.
//
// Run owns the goroutines that send, one for each delivery in progress, and waits for them.
//
// # Webhooks
//
// Sender notifies other programs when runs end: by an HTTP request to an address that a caller
// named, signed according to Standard Webhooks. The address is not trusted: the sender connects
// only to public addresses, by HTTPS, unless the settings allow private ones; the check applies
// to the resolved address when connecting. Redirects are not followed, no proxy is used, and
// only the status and two headers of the response are read.
//
// The run and its answer are read when the webhook is sent, not when the run ends: content that
// was deleted meanwhile is not sent.
package deliveries
