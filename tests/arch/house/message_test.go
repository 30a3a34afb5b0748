package house_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
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
