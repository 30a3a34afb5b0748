// Package deliveries brings what was written down for somebody outside to its
// receiver: it claims what is due, lets the sender of its kind try, and stores what
// came of it.
//
//	pending ──claim──▶ (leased) ──▶ delivered
//	   ▲                  │  └────▶ failed     the receiver does not want it, or a day has passed
//	   └── 1 s … 1 h ─────┘
//
// A delivery is written in the transaction of what it reports, so a crash loses
// none. One that was sent while the process died, before that was stored, is sent
// again, with the same id: a receiver may see it twice. Of several processes each
// claims other deliveries, by leases of the database's clock; one that died is
// relieved when its leases are past, or at once by its restart.
//
// Run owns the goroutines that send, one for each delivery at work, and waits for
// them.
package deliveries
