// Package house_test measures the source as a whole. `make house` prints the recorded figures,
// today's and the goals; `make house UPDATE=1` records today's. The environment changes it:
//
//	HOUSE_NAMES=1        lists the functions named by one word, package by package
//	HOUSE_WAY=1          lists the functions on the way of a message
//	HOUSE_BEFORE=commit  measures that commit instead of printing what is recorded
//
// Counted is every Go file of app/ and main.go, without tests, generated files and testdata.
package house_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"

	"bobbin/tests/must"
)

var update = flag.Bool("update", false, "record today's figures")

const (
	root   = "../../.."
	record = "../testdata/house.txt"
)

// figure is a row of the table.
type figure struct {
	name        string
	value, goal float64 // goal: the largest value wanted; 0 = none
}

func (f figure) String() string { return strconv.FormatFloat(f.value, 'f', -1, 64) }

// TestShowHouse prints the table.
func TestShowHouse(t *testing.T) {
	if os.Getenv("HOUSE") == "" {
		t.Skip("it builds the program; use make house")
	}
	now, src := measure(t, root)
	before := readRecord(t)
	if commit := os.Getenv("HOUSE_BEFORE"); commit != "" {
		before = measureCommit(t, commit)
	}
	t.Logf("\n%s", formatTable(before, now))
	if os.Getenv("HOUSE_NAMES") != "" {
		t.Logf("functions named by one word \n%s", src.listNames())
	}
	if os.Getenv("HOUSE_WAY") != "" {
		t.Logf("functions on the way of a message\n%s", src.listOnTheWay())
	}
	if !*update {
		return
	}
	text := run(t, root, "git", "rev-parse", "--short", "HEAD") + " commit\n"
	for _, f := range now {
		text += f.String() + " " + f.name + "\n"
	}
	must.Do(t, os.WriteFile(record, []byte(text), 0o600))
}

// measure returns the figures of the module in dir.
func measure(t *testing.T, dir string) ([]figure, *source) {
	t.Helper()
	src := loadSource(t, dir)
	return slices.Concat(src.figures(), src.partFigures(), []figure{
		{"lines that moved from app to tests since the goals were set", countText(t, dir, isMoved, "\n"), 0},
		{"lines of tests", countText(t, dir, isTest, "\n"), 95_000},
		{"words of the documentation", countText(t, dir, isDocument, ""), 45_000},
	}, messageFigures(t, dir, src)), src
}

// measureCommit returns the figures of a commit, measured in a worktree of its own.
func measureCommit(t *testing.T, commit string) map[string]string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "source")
	run(t, root, "git", "worktree", "add", "--quiet", "--detach", dir, commit)
	t.Cleanup(func() { run(t, root, "git", "worktree", "remove", "--force", dir) })
	figures, _ := measure(t, dir)
	values := map[string]string{"commit": commit}
	for _, f := range figures {
		values[f.name] = f.String()
	}
	return values
}

// readRecord returns the recorded figures by their names.
func readRecord(t *testing.T) map[string]string {
	t.Helper()
	text := must.Get(os.ReadFile(record))(t)
	values := map[string]string{}
	for line := range strings.Lines(string(text)) {
		value, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		values[name] = value
	}
	return values
}

// formatTable returns the figures beside those before and the goals.
func formatTable(before map[string]string, now []figure) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "before (%s)\tnow\tgoal\t\t\n", before["commit"])
	for _, f := range now {
		goal, met := "", ""
		if f.goal > 0 {
			goal = "≤ " + figure{value: f.goal}.String()
		}
		if f.goal > 0 && f.value <= f.goal {
			met = "met"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t  %s\n", before[f.name], f, goal, met, f.name)
	}
	_ = w.Flush() // a strings.Builder takes everything
	return text.String()
}

// listNames returns the functions named by one word, by package, file and line.
func (s *source) listNames() string {
	var text strings.Builder
	functions := slices.DeleteFunc(slices.Clone(s.functions), func(f function) bool { return !f.oneWord() })
	slices.SortStableFunc(functions, func(a, b function) int { return strings.Compare(a.dir(), b.dir()) })
	for _, f := range functions {
		mark := ""
		if isParticiple(f.name) {
			mark = " (a bare participle)"
		}
		fmt.Fprintf(&text, "%s:%d: %s%s\n", f.file, f.line, f.name, mark)
	}
	return text.String()
}

// listOnTheWay returns the functions that a message passes, by file and line.
func (s *source) listOnTheWay() string {
	var text strings.Builder
	for _, f := range s.functions {
		if s.onTheWay[f] {
			fmt.Fprintf(&text, "%s:%d: %s (%d lines)\n", f.file, f.line, f.name, f.end-f.line+1)
		}
	}
	return text.String()
}

// run runs a command in dir and returns what it prints.
func run(t *testing.T, dir string, command ...string) string {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", command, err, out)
	}
	return strings.TrimSpace(string(out))
}
