package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// write writes files below a new folder and returns it.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestFindTests(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{
		"a_test.go": `package a
func TestMain(m *testing.M) { seed.Value() }
func TestDirect(t *testing.T) { seed.Check(t, nil) }
func TestHelper(t *testing.T) { for range 3 { outer(t) } }
func TestMethod(t *testing.T) { (world{}).roll() }
func TestVariable(t *testing.T) { _ = delays }
func TestFixed(t *testing.T) { fixed() }
func TestPlain(t *testing.T) {}
func FuzzX(f *testing.F) { seed.Rand(f, 1) }`,
		"b_test.go": `package a
var delays = seed.Fixed(seed.Value(), 1)
func outer(t *testing.T) { inner(t) }
func inner(t *testing.T) { seed.Rand(t, 1) }
func fixed() { seed.Fixed(1, 2) }
type world struct{}
func (world) roll() { inner(nil) }`,
		"a.go": "package a",
	})
	got, targets, err := findTests(dir)
	if diff := cmp.Diff([]string{"TestDirect", "TestHelper", "TestMethod", "TestVariable"}, got); err != nil || diff != "" {
		t.Errorf("random tests (-want +got):\n%s%v", diff, err)
	}
	if diff := cmp.Diff([]string{"FuzzX"}, targets); diff != "" {
		t.Errorf("fuzz targets (-want +got):\n%s", diff)
	}
	if _, _, err := findTests(write(t, map[string]string{"a_test.go": "package"})); err == nil {
		t.Error("got no error for half a file")
	}
}

func TestFailedTests(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		out  string
		want []string
	}{
		"failures":        {"=== RUN   TestA\n--- FAIL: TestB (0.1s)\n    --- FAIL: TestB/sub (0.1s)\n--- PASS: TestC (0s)\n--- FAIL: TestA (0.1s)\nFAIL\n", []string{"TestA", "TestB"}},
		"panic":           {"panic: boom\n\ngoroutine 7 [running]:\nbobbin/app/runs_test.TestA(0x1)\n\t/x/a_test.go:1\n", []string{"TestA"}},
		"timeout":         {"panic: test timed out after 1s\n\trunning tests:\n\t\tTestA/sub (1s)\n", []string{"TestA"}},
		"nothing is said": {"signal: killed\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := failedTests(tt.out); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestEndOfFuzzing(t *testing.T) {
	t.Parallel()
	for out, want := range map[string]bool{
		"fuzz: elapsed: 21s, execs: 9\n--- FAIL: FuzzA (21.03s)\n    context deadline exceeded\nFAIL\nexit status 1\n":       true,
		"--- FAIL: FuzzA (2.00s)\n    --- FAIL: FuzzA (0.00s)\n        a_test.go:9: context deadline exceeded\n    \nFAIL\n": false,
	} {
		if got := endOfFuzzing.MatchString(out); got != want {
			t.Errorf("%s: got %t, want %t", out, got, want)
		}
	}
}

// module is one whose tests fail with some seeds.
func module() map[string]string {
	return map[string]string{
		"go.mod":             "module bobbin\n\ngo 1.26\n",
		"tests/seed/seed.go": "package seed\n\nimport \"os\"\n\nfunc Value() string { return os.Getenv(\"BOBBIN_TEST_SEED\") }\n",
		"fine/fine_test.go":  "package fine\n\nimport (\n\t\"testing\"\n\n\t\"bobbin/tests/seed\"\n)\n\nfunc TestFine(t *testing.T) { seed.Value() }\n",
		"odd/odd_test.go": "package odd\n\nimport (\n\t\"testing\"\n\n\t\"bobbin/tests/seed\"\n)\n\nfunc TestOdd(t *testing.T) {\n\tif s := seed.Value(); (s[len(s)-1]-'0')%2 == 1 {\n\t\tt.Error(s, \"is odd\")\n\t}\n}\n" +
			"\nfunc TestNever(t *testing.T) { t.Error(\"is not random\") }\n" +
			"\nfunc FuzzOdd(f *testing.F) {\n\tf.Add(1)\n\tf.Fuzz(func(t *testing.T, n int) { t.Error(n) })\n}\n",
	}
}

// newExplorerCommand returns the command in a module.
func newExplorerCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "EXPLORE_MAIN=1")
	return cmd
}

// runExplorer runs the command in a module and returns what it printed and its status.
func runExplorer(t *testing.T, dir string, args ...string) (string, int) {
	t.Helper()
	cmd := newExplorerCommand(t.Context(), dir, args...)
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// interruptExplorer runs the command in a module until it has printed all of the texts, interrupts
// it, and returns what it printed and its status.
func interruptExplorer(t *testing.T, dir string, texts []string, args ...string) (string, int) {
	t.Helper()
	cmd := newExplorerCommand(t.Context(), dir, args...)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	missing := func(text string) bool { return !strings.Contains(out.String(), text) }
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		out.WriteString(lines.Text() + "\n")
		if !slices.ContainsFunc(texts, missing) {
			_ = cmd.Process.Signal(os.Interrupt) // an error means that it has ended
		}
	}
	if exit := (*exec.ExitError)(nil); !errors.As(cmd.Wait(), &exit) {
		t.Errorf("got status 0 and %s", out.String())
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

func TestMain(m *testing.M) {
	if os.Getenv("EXPLORE_MAIN") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestExplore(t *testing.T) {
	t.Parallel()
	root, kept := write(t, module()), t.TempDir()
	texts := []string{"FAIL  ./odd TestOdd  seed ", "FAIL  ./odd FuzzOdd  seed "}
	out, status := interruptExplorer(t, root, texts, "-time=5m", "-seed=11", "-p=2", "-out="+kept)
	if status != 1 {
		t.Errorf("got status %d, want 1", status)
	}
	for _, line := range []string{
		`(?m)^2 random tests in 2 packages and 1 fuzz targets for 5m0s, first seed 11, failures in `,
		`(?m)^FAIL  ./odd TestOdd  seed \d*[13579]  BOBBIN_TEST_SEED=\d*[13579] scripts/test -run '\^TestOdd\$' ./odd$`,
		`(?m)^FAIL  ./odd FuzzOdd  seed \d+  scripts/test -run '\^FuzzOdd\$' ./odd$`,
		`(?m)^./odd +FuzzOdd +\d+ +[1-9]`,
	} {
		if !regexp.MustCompile(line).MatchString(out) {
			t.Errorf("got %s, want a line %s", out, line)
		}
	}
	if strings.Contains(out, "TestFine") || strings.Contains(out, "TestNever") {
		t.Errorf("got %s, want failures of the random tests alone", out)
	}
	if seed := regexp.MustCompile(`TestOdd  seed (\d+)`).FindStringSubmatch(out); seed != nil {
		if text, err := os.ReadFile(filepath.Join(kept, "odd-"+seed[1]+".log")); err != nil || !bytes.Contains(text, []byte("is odd")) {
			t.Errorf("got %s, %v, want what the test printed", text, err)
		}
	}
	if out, status := runExplorer(t, root, "-time=2s", "./fine"); status != 0 || !strings.Contains(out, "./fine") {
		t.Errorf("got status %d and %s, want 0 and the table", status, out)
	}
}

func TestBadArguments(t *testing.T) {
	t.Parallel()
	root := write(t, module())
	for want, args := range map[string][]string{
		"must be greater than 0": {"-time=0s"}, "no random tests in ./tests/seed": {"./tests/seed"}, "go list": {"./nowhere"},
	} {
		if out, status := runExplorer(t, root, args...); status != 2 || !strings.Contains(out, want) {
			t.Errorf("%v: got status %d and %s, want 2 and %q", args, status, out, want)
		}
	}
}
