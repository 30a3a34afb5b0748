// Package seed is the one source of randomness of the tests. Everything a test draws comes from
// BOBBIN_TEST_SEED or, where that is not set, as in CI, from a constant: the same cases in the
// same order each time. A test that fails prints its seed and the command that repeats it.
//
// make explore and make nightly set BOBBIN_TEST_SEED. With it, properties have more cases, and
// the tests run, too, whose outcome depends on processes and clocks as well: see SkipInCI.
package seed

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

const (
	variable = "BOBBIN_TEST_SEED"
	usual    = 1        // the seed of CI
	largest  = 1e18 - 1 // of all seeds
	checks   = 30       // cases of a property in CI; rapid has 100
)

//nolint:gochecknoglobals // rapid takes its settings from flags, which must be set before they are parsed
var (
	value, chosen = configure()
	dir           = packageDir()
	printing      sync.Map // the tests that print their command already, by testing.TB
)

// configure reads the seed and hands it to rapid.
func configure() (uint64, bool) {
	value, chosen, err := parse(os.Getenv(variable))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	settings := map[string]string{
		"rapid.seed":       strconv.FormatUint(value, 10),
		"rapid.nofailfile": "true", // the seed repeats a failure
	}
	if !chosen {
		settings["rapid.checks"] = strconv.Itoa(checks)
	}
	for name, setting := range settings {
		if err := flag.Set(name, setting); err != nil {
			panic(err)
		}
	}
	return value, chosen
}

// parse returns the seed in the text of the variable, and whether there is one. Zero is none:
// rapid would draw its own.
func parse(text string) (uint64, bool, error) {
	if text == "" {
		return usual, false, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 || n > largest {
		return 0, false, fmt.Errorf("%s is %q: set it to a whole number from 1 to %d, or unset it", variable, text, uint64(largest))
	}
	return n, true, nil
}

// Value returns the seed of this run.
func Value() uint64 { return value }

// IsChosen reports whether BOBBIN_TEST_SEED is set: not in CI.
func IsChosen() bool { return chosen }

// SkipInCI skips a test whose outcome depends on the speed of processes or the order of
// goroutines: no seed repeats it. make explore and make nightly run it; what they find becomes
// a case with a fixed order in a test that CI runs.
func SkipInCI(tb testing.TB) {
	tb.Helper()
	PrintOnFailure(tb)
	if !chosen {
		tb.Skip("a seed cannot repeat this test: make explore and make nightly run it, or BOBBIN_TEST_SEED=1")
	}
}

// Rand returns random numbers for the test. The streams of a test differ; each is the same in
// every run with the same seed. It may be used by several goroutines at once.
func Rand(tb testing.TB, stream uint64) *rand.Rand {
	tb.Helper()
	PrintOnFailure(tb)
	return rand.New(&source{pcg: rand.NewPCG(value, stream)}) //nolint:gosec // choices of a test
}

// Fixed returns random numbers that no seed changes, for texts and sizes that other figures of
// the test depend on. It may be used by several goroutines at once.
func Fixed(seed, stream uint64) *rand.Rand {
	return rand.New(&source{pcg: rand.NewPCG(seed, stream)}) //nolint:gosec // choices of a test
}

// Check is rapid.Check, whose cases the seed decides.
func Check(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	PrintOnFailure(t)
	rapid.Check(t, property)
}

// PrintOnFailure logs the seed and the command that repeats the test if it fails.
func PrintOnFailure(tb testing.TB) {
	tb.Helper()
	if _, twice := printing.LoadOrStore(tb, true); twice {
		return
	}
	tb.Cleanup(func() {
		printing.Delete(tb)
		if tb.Failed() {
			tb.Logf("the seed was %d; repeat with: %s", value, command(tb.Name()))
		}
	})
}

// packageDir returns the folder of the package under test, seen from the module's root. Go runs
// its tests there.
func packageDir() string {
	here, err := os.Getwd()
	if err != nil {
		return "."
	}
	for root := here; root != filepath.Dir(root); root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			if relative, err := filepath.Rel(root, here); err == nil {
				return relative
			}
		}
	}
	return "."
}

// source is a PCG for several goroutines.
type source struct {
	mu  sync.Mutex
	pcg *rand.PCG
}

func (s *source) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pcg.Uint64()
}

// Setting returns the number in a variable of the environment, or what holds without one.
func Setting(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n >= 0 {
		return n
	}
	return otherwise
}

// command returns the command that repeats a test.
func command(test string) string {
	top, _, _ := strings.Cut(test, "/")
	return fmt.Sprintf("%s=%d scripts/test -run '^%s$' ./%s", variable, value, top, filepath.ToSlash(dir))
}
