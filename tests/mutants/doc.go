// Package mutants breaks app/core/contextwindow on purpose: each mutant is one
// small change of its source, and the test that guards what it breaks must fail. A property fails by a
// case that was recorded for the mutant in its testdata/rapid, never by chance.
//
// CI looks whether each mutant has its place in the source; make nightly runs all. After a change of the
// package or of a mutant, `go test -v ./tests/mutants -record` runs all, prints a table of who kills what,
// and writes the cases that are missing. A case that is too old because the generator of a property has
// changed is deleted before.
package mutants
