// Package mutants breaks app/core/contextwindow on purpose: each mutant is one
// small change of its source, and the test that guards what it breaks must fail.
// Run it with `go test -v ./tests/mutants`; it prints a table of who kills what.
package mutants
