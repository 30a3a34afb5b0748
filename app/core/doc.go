// Package core is the vocabulary of Bobbin: the values that every part speaks
// of and hands to the others. It knows nothing of how they are stored, asked
// for, or computed, so that it never has a reason to change with them.
//
// One noun, one file: session.go, message.go, run.go, summary.go, event.go,
// agent.go, memory.go, usage.go, page.go, identity.go, errors.go. The JSON tags
// are the public form of API.md.
//
// All values are plain data, safe to copy; slices, maps and pointers in them are
// shared by copies and must not be changed once a value has been handed on.
package core
