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
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/arch"
	"bobbin/tests/must"
	"bobbin/tests/process"
	"bobbin/tests/provider"
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
	must.True(t, err == nil, "%v: %v\n%s", command, err, out)
	return strings.TrimSpace(string(out))
}

// sessions is how many sessions have one, two or three turns.
const sessions = 20

// messageFigures returns how many functions and packages of app a message passes: a later one
// of a session, 24 bytes, over SSE, on SQLite, answered in five pieces without tools. The
// program is built with counters and runs three times for the same time, with one more turn
// in each session. A block that ran once more for each such turn, both times, is on the way;
// one that ran a few times more is of a background loop.
func messageFigures(t *testing.T, root string, src *source) []figure {
	t.Helper()
	den := must.Get(process.Open("house"))(t)
	t.Cleanup(den.Close)
	model := apptest.NewProvider(t, provider.Options{Pieces: 5})
	b := bobbin{den: den, program: filepath.Join(den.Dir, "bobbin"), settings: fmt.Sprintf("default_llm: small\nmodels:\n  - name: small\n    provider: openai\n    base_url: %s\n"+
		"    api_key_env: PROVIDER_KEY\n    context_window: 128000\n    max_output_tokens: 1000\n", model.URL)}
	run(t, root, "go", "build", "-trimpath", "-cover", "-covermode=atomic", "-coverpkg=.,./app/...,encoding/json", "-o", b.program, ".")
	began := time.Now()
	three := b.count(t, 3, began)
	took := time.Since(began)
	two := b.count(t, 2, time.Now().Add(took))
	calls := float64(jsonCalls(t, three)-jsonCalls(t, two)) / sessions
	return append(src.passed(b.count(t, 1, time.Now().Add(took)), two, three), figure{"calls of encoding/json in a message", math.Round(calls), 12})
}

// jsonCalls returns how often JSON was written, read or checked by the standard library.
func jsonCalls(t *testing.T, blocks map[string]int) (n int) {
	t.Helper()
	const folder = "encoding/json/"
	goroot := run(t, root, "go", "env", "GOROOT")
	counted := []string{"Marshal", "MarshalIndent", "Unmarshal", "Valid", "Compact", "Encode", "Decode"}
	for _, name := range []string{"encode.go", "decode.go", "scanner.go", "indent.go", "stream.go"} {
		set := token.NewFileSet()
		f := must.Get(parser.ParseFile(set, filepath.Join(goroot, "src", folder+name), nil, parser.SkipObjectResolution))(t)
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && slices.Contains(counted, d.Name.Name) {
				at := set.Position(d.Body.Lbrace)
				for block, count := range blocks {
					if strings.HasPrefix(block, fmt.Sprintf("%s%s:%d.%d,", folder, name, at.Line, at.Column)) {
						n += count
					}
				}
			}
		}
	}
	return n
}

// passed returns how many functions, and packages of theirs, ran in every later turn.
func (s *source) passed(one, two, three map[string]int) []figure {
	const atLeast = sessions * 9 / 10 // a loop may have run a little more often in the shorter run
	functions, files, packages := map[function]bool{}, map[string]bool{}, map[string]bool{}
	for block := range three {
		if two[block]-one[block] < atLeast || three[block]-two[block] < atLeast {
			continue
		}
		file, position, _ := strings.Cut(strings.TrimPrefix(block, arch.Module+"/"), ":")
		start, _, _ := strings.Cut(position, ".")
		line, _ := strconv.Atoi(start) // the go tool wrote it
		for _, f := range s.functions {
			if f.file == file && f.line <= line && line <= f.end {
				functions[f], files[file], packages[path.Dir(file)] = true, true, true
			}
		}
	}
	s.onTheWay = functions
	return []figure{
		{"functions on the way of a message", float64(len(functions)), 480},
		{"files on the way of a message", float64(len(files)), 150},
		{"packages on the way of a message", float64(len(packages)), 0},
	}
}

// bobbin is the program that counts.
type bobbin struct {
	den               *process.Den
	program, settings string
}

// count runs the program with so many turns in each session, at least until the given
// time, and returns how often each block of the source ran.
func (b bobbin) count(t *testing.T, turns int, until time.Time) map[string]int {
	t.Helper()
	dir := b.den.Temp(t)
	running := b.den.NewServer(t, b.program, dir, b.settings, "GOCOVERDIR="+dir)
	must.Do(t, running.Serve(t.Context()))
	c := must.Get(client.New(client.Options{URL: "http://" + running.Door.Addr()}))(t)
	for range sessions {
		id := apptest.NewSession(t, c, ops.NewSession{})
		for range turns {
			apptest.SendMessage(t, c, core.SendMessage{SessionID: id, Content: "How far is it to Oslo ?!"})
		}
	}
	process.Pause(t.Context(), time.Until(until))
	must.Do(t, running.Stop(time.Minute))
	run(t, root, "go", "tool", "covdata", "textfmt", "-i="+dir, "-o="+filepath.Join(dir, "profile"))
	profile := must.Get(os.ReadFile(filepath.Join(dir, "profile")))(t)
	counts := map[string]int{}
	for line := range strings.Lines(string(profile)) {
		if fields := strings.Fields(line); len(fields) == 3 { // position, statements, count
			counts[fields[0]], _ = strconv.Atoi(fields[2]) // the go tool wrote it
		}
	}
	return counts
}
