// Package arch checks that the house stays as it was drawn: which package may
// import which, who alone may import a library, and what tests keep to.
//
// Load reads the source without building it, CheckImports and CheckFiles judge
// what was read. Each breach is one sentence that says what is wrong and what to
// do instead. The tables in rules.go are the conventions in Go; a new part of the
// house begins with a line there.
//
// Imports are judged in production files. Test files may cross the parts, since
// a test beside the code may want real storage; only those of app/core may not.
package arch
