// Command explore runs the random tests of the module with new seeds, and its fuzz targets, again
// and again, several packages at once, until the time is over. It prints a line for each failure,
// with the command that repeats it, and keeps what the tests printed. Its status is 1 if a test
// failed, 2 if it could not begin.
//
//	go run ./tests/explore -time 30m             everything
//	go run ./tests/explore -time 5m ./app/core/...
//
// The random tests are those that draw from package seed; see find.go.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"
)

// progressInterval is how often the state is printed.
const progressInterval = time.Minute

func main() {
	duration := flag.Duration("time", 30*time.Minute, "how long")
	atOnce := flag.Int("p", runtime.NumCPU(), "packages at once")
	first := flag.Int64("seed", time.Now().UnixNano()%1e12, "the first seed; the others follow")
	out := flag.String("out", "", "folder for what failed tests printed (default a temporary one)")
	flag.Parse()
	if *duration <= 0 || *atOnce < 1 || *first < 1 {
		fmt.Fprintln(os.Stderr, "explore: -time, -p and -seed must be greater than 0")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	e, err := newExplorer(ctx, *out, *first, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "explore:", err)
		os.Exit(2)
	}
	failures := e.run(ctx, *duration, *atOnce)
	_ = os.RemoveAll(e.binaries) // nothing is left to be done about it
	if failures > 0 {
		os.Exit(1)
	}
}

// explorer runs suites with one seed after the other.
type explorer struct {
	suites   []*suite
	binaries string
	out      string
	first    int64

	mu       sync.Mutex
	queue    []*suite // those that nobody runs; guarded by mu
	next     int64    // seed; guarded by mu
	failures int      // guarded by mu
}

func newExplorer(ctx context.Context, out string, first int64, patterns []string) (*explorer, error) {
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	listed, err := exec.CommandContext(ctx, "go", append([]string{"list", "-f", "{{.ImportPath}} {{.Module.Path}} {{.Module.Dir}} {{.Dir}}"}, patterns...)...).Output()
	if err != nil {
		exit := &exec.ExitError{}
		_ = errors.As(err, &exit)
		return nil, fmt.Errorf("go list: %w\n%s", err, exit.Stderr)
	}
	e := &explorer{out: out, first: first, next: first}
	for line := range strings.Lines(string(listed)) {
		f := strings.Fields(line)
		tests, targets, err := findTests(f[3])
		if err != nil {
			return nil, err
		}
		pkg := "." + strings.TrimPrefix(f[0], f[1])
		if len(tests) > 0 {
			e.suites = append(e.suites, &suite{pkg: pkg, dir: f[3], tests: tests, race: isRaced(f[2], f[0])})
		}
		for _, target := range targets {
			e.suites = append(e.suites, &suite{pkg: pkg, dir: f[3], tests: []string{target}, fuzz: true})
		}
	}
	if len(e.suites) == 0 {
		return nil, fmt.Errorf("no random tests in %s", strings.Join(patterns, " "))
	}
	if e.binaries, err = os.MkdirTemp("", "bobbin-explore-"); err != nil {
		return nil, err
	}
	if e.out == "" {
		if e.out, err = os.MkdirTemp("", "bobbin-failures-"); err != nil {
			return nil, err
		}
	}
	e.queue = slices.Clone(e.suites)
	return e, os.MkdirAll(e.out, 0o755)
}

// isRaced reports whether scripts/test tests a package with the race detector.
func isRaced(root, pkg string) bool {
	script, err := os.ReadFile(filepath.Join(root, "scripts", "test"))
	if err != nil {
		return false
	}
	m := regexp.MustCompile(`(?m)^with='(.*)'$`).FindSubmatch(script)
	if m == nil {
		return false
	}
	raced, err := regexp.Compile(string(m[1]))
	return err == nil && raced.MatchString(pkg)
}

// run runs the suites until the time is over and returns how many failures there were.
func (e *explorer) run(ctx context.Context, duration time.Duration, atOnce int) int {
	tests, targets := 0, 0
	for _, s := range e.suites {
		if s.fuzz {
			targets++
		} else {
			tests += len(s.tests)
		}
	}
	fmt.Printf("%d random tests in %d packages and %d fuzz targets for %s, first seed %d, failures in %s\n", tests, len(e.suites)-targets, targets, duration, e.first, e.out)
	ctx, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	end := time.Now().Add(duration)
	var workers sync.WaitGroup
	for range atOnce {
		workers.Go(func() {
			for ctx.Err() == nil && e.turn(ctx) {
			}
		})
	}
	done := make(chan struct{})
	go func() { workers.Wait(); close(done) }()
	ticker := time.NewTicker(progressInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			e.mu.Lock()
			fmt.Printf("%d seeds, %d failures, %s left\n", e.next-e.first, e.failures, time.Until(end).Round(time.Second))
			e.mu.Unlock()
		case <-done:
			e.report()
			return e.failures
		}
	}
}

// turn takes the suite that has waited longest and runs it with the next seed. It reports whether
// there is one.
func (e *explorer) turn(ctx context.Context) bool {
	e.mu.Lock()
	if len(e.queue) == 0 {
		e.mu.Unlock()
		return false
	}
	s, seed := e.queue[0], e.next
	e.queue, e.next = e.queue[1:], e.next+1
	e.mu.Unlock()
	if s.binary == "" && !s.fuzz {
		if err := s.build(ctx, e.binaries); err != nil {
			if ctx.Err() == nil {
				e.fail(s, []string{""}, seed, err.Error())
			}
			return true // it is not queued again
		}
	}
	failed, out := s.explore(ctx, seed)
	e.fail(s, failed, seed, out)
	e.mu.Lock()
	defer e.mu.Unlock()
	if ctx.Err() == nil {
		s.runs++
	}
	e.queue = append(e.queue, s)
	return true
}

// fail prints a line for each failed test and keeps the output.
func (e *explorer) fail(s *suite, failed []string, seed int64, out string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, test := range failed {
		s.failures++
		e.failures++
		fmt.Printf("FAIL  %s %s  seed %d  %s\n", s.pkg, cmp.Or(test, "(the whole program)"), seed, command(test, s.pkg, seed))
	}
	if len(failed) == 0 {
		return
	}
	name := filepath.Join(e.out, fmt.Sprintf("%s-%d.log", filepath.Base(s.pkg), seed))
	if err := os.WriteFile(name, []byte(out), 0o600); err != nil {
		fmt.Println("the output could not be kept:", err)
	}
}

// report prints how often each package ran and failed.
func (e *explorer) report() {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "package\ttests\truns\tfailures")
	for _, s := range e.suites {
		tests := strconv.Itoa(len(s.tests))
		if s.fuzz {
			tests = s.tests[0]
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\n", s.pkg, tests, s.runs, s.failures)
	}
	_ = w.Flush()
}
