// Package eval_test replays the samples and generated conversations in whole
// Bobbins, and holds what the reports say against what must be true of them. The
// pictures of the documentation are made here.
package eval_test
