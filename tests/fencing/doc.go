// Package fencing proves that a process which lost its work, and does not know it yet,
// cannot write any more: two processes on one PostgreSQL, of which one hangs beyond its
// lease while the other takes over and finishes, and then goes on.
package fencing
