// Package repositories reads and writes Bobbin's database, with one type for each noun.
//
// # Promises
//
// Every method is safe for concurrent use, in this process and by many replicas.
// A method that writes more than one row does it in one transaction: all of it is
// stored, or nothing. Events are written with what they report and returned with
// their numbers, to be published after the commit.
//
// Methods that take an id from outside take a core.Tenant; anything outside of it
// is core.ErrNotFound, as if it did not exist. The other errors a caller can
// act on are core.ErrConflict (the state does not allow it), core.ErrStale (a
// fenced or compare-and-set write lost), core.ErrRateLimited (too many runs
// queued) and core.ErrInvalid (a bad cursor, or text that cannot be stored).
// gorm's own errors never leave the package: see errors.go.
//
// # Order and locks
//
// What adds to a session is decided without a lock and proven by the number of the
// last event (shareLog), or in a transaction that locks the session's row first (changeLog).
// It alone then numbers messages, events and runs, so the numbers have no gaps,
// and its counts stay true until it commits. Run rows are locked after the session's
// row, never before it. Statements on runs of many sessions (leases.go) lock no
// session: they lock the rows in a fixed order, or skip locked ones. So the package
// cannot deadlock with itself, and no write needs a retry.
//
// Leases are written and compared by the database's clock (clockSQL).
package repositories
