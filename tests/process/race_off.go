//go:build !race

package process

// Raced says whether the test runs with the race detector.
const Raced = false
