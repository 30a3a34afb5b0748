// Package mutants breaks app/core/contextwindow on purpose: each mutant is one
// small change of its source, and the test that guards what it breaks must fail. A property fails by a
// case that was recorded for the mutant in its testdata/rapid, never by chance.
//
// In CI it runs some mutants if the package has changed since all were killed, else none; make nightly
// runs all. After a change of the package or of a mutant, `go test -v ./tests/mutants -record` runs all,
// prints a table of who kills what, and writes the cases that are missing and the checksum for CI. A case
// that is too old because the generator of a property has changed is deleted before.
package mutants
