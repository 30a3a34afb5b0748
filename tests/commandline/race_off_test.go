//go:build !race

package commandline_test

// raceEnabled says whether the test runs with the race detector.
const raceEnabled = false
