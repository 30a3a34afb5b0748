// Package db opens Bobbin's database, SQLite or PostgreSQL, and migrates its schema
// to the version of this program.
//
// The same code runs on both: Open selects the driver by the URL, Migrate applies
// the numbered SQL of package migrations. Package models has the rows, repositories
// the queries and writes, and dbtest databases for tests.
//
// Guarantees on both databases:
//
//   - A transaction that has locked a session's row is the only one that numbers
//     messages, events and runs of that session. On PostgreSQL that is SELECT …
//     FOR UPDATE; on SQLite every transaction takes the write lock when it begins.
//     A shared commit (package commit) locks the rows, too, and writes only what was
//     decided for the number of the last event.
//   - Times are UTC with whole microseconds, the same before and after storing.
//   - Leases are written and compared by the database's clock, never by ours.
//   - No SQL value is ever logged.
package db
