// Package repositories is how the rest of Bobbin reads and writes its database,
// one type for each noun.
//
// # Promises
//
// Every method is safe for concurrent use, in this process and by many replicas.
// A method that writes more than one row does it in one transaction: all of it is
// stored, or nothing. Events are written with what they report and returned with
// their numbers, to be published after the commit.
//
// Methods that take an id from outside take a core.Scope; what lies outside of it
// is core.ErrNotFound, like what does not exist. The other errors a caller can
// act on are core.ErrConflict (the state does not allow it), core.ErrStale (a
// fenced or compare-and-set write lost), core.ErrRateLimited (too many runs
// queued) and core.ErrInvalid (a bad cursor, or text that no database can store).
// gorm's own errors never leave the package: see failure.go.
//
// # Order and locks
//
// A transaction that adds to a session locks the session's row first (journal.go).
// It alone then numbers messages, events and runs, so the numbers have no gaps,
// and what it counted stays true until it commits. Run rows are locked after the
// session's, never before it. The statements that touch runs of many sessions at
// once (leases.go) lock no session: they take the rows in one order, or skip those
// that somebody holds. So nothing here can deadlock with itself, and no write has
// to be tried twice.
//
// Leases are written and compared by the database's clock (clock.go).
package repositories
