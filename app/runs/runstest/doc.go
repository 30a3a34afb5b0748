// Package runstest is storage in memory for the tests of what runs and chat do
// with it. It keeps the promises of app/db/repositories that they build on: one
// running run a session, writes fenced by the attempt, queue order, numbers
// without gaps, everything of one call or nothing. Every call is one transaction
// under one lock; Check says what promise was broken after all.
package runstest
