//go:build race

package fault_test

// raceEnabled says whether the test runs with the race detector.
const raceEnabled = true
