package mutants_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"bobbin/tests/must"
)

var record = flag.Bool("record", false, "write the cases that kill mutants")

// target is the package that is broken, seen from the root of the module.
const target = "./app/core/contextwindow"

// Each invariant of the package has a mutant that its own test kills, and so has
// each rung of the ladder and each timing.
func TestMutantsAreKilled(t *testing.T) {
	root := must.Get(filepath.Abs("../.."))(t)
	all := slices.Concat(invariants(), rungs(), timings())
	for _, m := range all {
		m.overlay(t, root) // each has its place in the source
	}
	if os.Getenv("BOBBIN_TEST_LONG") == "" && !*record {
		t.Skip("set BOBBIN_TEST_LONG=1, as make nightly does: the package is built once for each mutant")
	}
	sound(t, root, all)
	killed := make([]bool, len(all))
	t.Run("each", func(t *testing.T) {
		for i, m := range all {
			t.Run(m.name, func(t *testing.T) {
				t.Parallel()
				killed[i] = m.kill(t, root)
			})
		}
	})
	t.Log(table(all, killed))
}

// sound fails unless all tests that must kill a mutant pass without one.
func sound(t *testing.T, root string, all []mutant) {
	t.Helper()
	binary := build(t, root, "")
	var names []string
	for _, m := range all {
		names = append(names, m.test)
	}
	if out, err := run(t, root, binary, strings.Join(names, "|")); err != nil {
		t.Fatalf("the tests fail without a mutant: %v\n%s", err, out)
	}
}

// kill builds the package with the mutant in it and reports whether its test fails.
func (m mutant) kill(t *testing.T, root string) bool {
	t.Helper()
	binary := build(t, root, m.overlay(t, root))
	out, err := run(t, root, binary, m.test)
	if err == nil && *record {
		m.record(t, root, binary)
		out, err = run(t, root, binary, m.test)
	}
	switch exit := (*exec.ExitError)(nil); {
	case err == nil && strings.Contains(out, "no tests to run"):
		t.Errorf("there is no test %s", m.test)
	case err == nil:
		t.Errorf("%s: %s lets it live", m.name, m.test)
	case !errors.As(err, &exit):
		t.Errorf("run %s: %v", m.test, err)
	case !strings.Contains(out, "--- FAIL: "+m.test) && !strings.Contains(out, "panic: "):
		t.Errorf("%s ended otherwise than by a failed test: %v\n%s", m.test, err, out)
	default:
		return true
	}
	return false
}

// overlay writes the mutated file and returns the file that tells the compiler.
func (m mutant) overlay(t *testing.T, root string) string {
	t.Helper()
	path := filepath.Join(root, target, m.file)
	source := must.Get(os.ReadFile(path))(t)
	if n := strings.Count(string(source), m.old); n != 1 {
		t.Fatalf("%s has this text %d times, want once; the code has changed, so give the mutant its new place:\n%s", m.file, n, m.old)
	}
	mutated := filepath.Join(t.TempDir(), m.file)
	must.Do(t, os.WriteFile(mutated, []byte(strings.Replace(string(source), m.old, m.new, 1)), 0o600))
	raw := must.Get(json.Marshal(map[string]map[string]string{"Replace": {path: mutated}}))(t)
	overlay := filepath.Join(t.TempDir(), "overlay.json")
	must.Do(t, os.WriteFile(overlay, raw, 0o600))
	return overlay
}

// build compiles the package's tests and returns the program; an empty overlay is
// the package as it is. A mutant that does not compile proves nothing.
func build(t *testing.T, root, overlay string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "contextwindow.test")
	args := []string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-o", binary}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.CommandContext(t.Context(), "go", append(args, target)...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "GOGC=400") // see scripts/test
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("does not compile: %v\n%s", err, out)
	}
	return binary
}

// run runs the tests that match and returns what they said. A property draws nothing: it has the cases
// that were recorded for it, which rapid reads from testdata/rapid.
func run(t *testing.T, root, binary, tests string, args ...string) (string, error) {
	t.Helper()
	args = append([]string{"-test.run=^(" + tests + ")$", "-test.timeout=10m", "-rapid.checks=0", "-rapid.nofailfile", "-rapid.shrinktime=1ms"}, args...)
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Dir, cmd.Env = filepath.Join(root, target), append(os.Environ(), "BOBBIN_TEST_SEED=") // the seed of CI
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// record has the property find a case that kills the mutant, makes it small, and keeps it under the
// mutant's name.
func (m mutant) record(t *testing.T, root, binary string) {
	t.Helper()
	out, _ := run(t, root, binary, m.test, "-rapid.checks=5000", "-rapid.nofailfile=false", "-rapid.shrinktime=20s")
	found := regexp.MustCompile(`-rapid\.failfile="([^"]+)"`).FindStringSubmatch(out)
	if found == nil {
		return // kill says that it lives
	}
	slug := strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(m.name), "-"), "-")
	path := filepath.Join(root, target, found[1])
	named := filepath.Join(filepath.Dir(path), filepath.Base(filepath.Dir(path))+"-"+slug+".fail")
	must.Do(t, os.Rename(path, named))
}

// table returns who kills what, a line a mutant.
func table(all []mutant, killed []bool) string {
	var b strings.Builder
	for i, m := range all {
		by := "LIVES, although it should be killed by " + m.test
		if killed[i] {
			by = m.test
		}
		fmt.Fprintf(&b, "\n%-56s → %s", m.name, by)
	}
	return b.String()
}
