package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// suite is the random tests of a package, or one of its fuzz targets.
type suite struct {
	pkg   string // seen from the root: "./app/runs"
	dir   string
	tests []string
	fuzz  bool
	race  bool

	binary   string // empty = not built yet
	runs     int
	failures int
}

// build compiles the package's tests.
func (s *suite) build(ctx context.Context, folder string) error {
	binary := filepath.Join(folder, strings.ReplaceAll(strings.TrimPrefix(s.pkg, "./"), "/", "-")+".test")
	args := []string{"test", "-c", "-trimpath", "-vet=off", "-ldflags=-w", "-o", binary}
	if s.race {
		args = append(args, "-race", "-gcflags=modernc.org/...=-race=false") // as scripts/test does
	}
	cmd := exec.CommandContext(ctx, "go", append(args, s.dir)...)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), "GOGC=400")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", s.pkg, err, out)
	}
	s.binary = binary
	return nil
}

// fuzzTime is how long a fuzz target has its turn.
const fuzzTime = "20s"

// explore runs the tests once with the seed, in an order that it decides, too, or fuzzes for a
// while: Go writes the input of a failure into testdata, where it is a fixed case from then on.
// It returns the tests that failed, "" for the whole program, and what was printed.
func (s *suite) explore(ctx context.Context, seed int64) (failed []string, out string) {
	pattern := "^(" + strings.Join(s.tests, "|") + ")$"
	cmd := exec.CommandContext(ctx, s.binary, "-test.run="+pattern, fmt.Sprintf("-test.shuffle=%d", seed), "-test.timeout=20m", "-test.v")
	if s.fuzz { // only go test instruments the code
		cmd = exec.CommandContext(ctx, "go", "test", "-trimpath", "-vet=off", "-run=^$", "-fuzz="+pattern, "-fuzztime="+fuzzTime, "-parallel=1", s.dir)
	}
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), fmt.Sprintf("BOBBIN_TEST_SEED=%d", seed))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C in the terminal reaches explore alone
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	printed, err := cmd.CombinedOutput()
	if err == nil || ctx.Err() != nil || s.fuzz && endOfFuzzing.Match(printed) {
		return nil, ""
	}
	failed = failedTests(string(printed))
	if exit := (*exec.ExitError)(nil); len(failed) == 0 || !errors.As(err, &exit) {
		failed = append(failed, "")
	}
	return failed, string(printed)
}

// endOfFuzzing is what a fuzz target prints that failed because its time was over, without an input
// that fails it (golang/go#75804, fixed in Go 1.27).
var endOfFuzzing = regexp.MustCompile(`(?m)^--- FAIL: Fuzz\S+ \(.*\)\n    context deadline exceeded\nFAIL$`)

var (
	failLine = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)
	// The tests at work when the program ended, after a panic or a timeout.
	panicLine = regexp.MustCompile(`(?m)^(?:panic|fatal error): `)
	atWork    = regexp.MustCompile(`(?m)^\t\t(Test[^/\s]*)\S* \(`)
	frame     = regexp.MustCompile(`(?m)^bobbin/\S*\.(Test[^.(\s]+)\(`)
)

// failedTests returns the top-level tests that failed by what a test program printed.
func failedTests(out string) []string {
	var tests []string
	for _, m := range failLine.FindAllStringSubmatch(out, -1) {
		tests = append(tests, m[1])
	}
	if len(tests) == 0 && panicLine.MatchString(out) {
		for _, m := range slices.Concat(atWork.FindAllStringSubmatch(out, 1), frame.FindAllStringSubmatch(out, 1)) {
			tests = append(tests, m[1])
		}
	}
	slices.Sort(tests)
	return slices.Compact(tests)
}

// command returns what repeats a test with the seed. The inputs of fuzz targets are in testdata.
func command(test, pkg string, seed int64) string {
	if strings.HasPrefix(test, "Fuzz") {
		return fmt.Sprintf("scripts/test -run '^%s$' %s", test, pkg)
	}
	if test == "" {
		return fmt.Sprintf("BOBBIN_TEST_SEED=%d scripts/test %s", seed, pkg)
	}
	return fmt.Sprintf("BOBBIN_TEST_SEED=%d scripts/test -run '^%s$' %s", seed, test, pkg)
}
