package house_test

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"bobbin/tests/arch"
	"bobbin/tests/must"
)

// source is what is counted of a module.
type source struct {
	files     map[string]int    // by folder
	sizes     map[string]int    // lines, by folder
	functions []function        // by file and line
	arrows    map[arrow]bool    // imports between the packages of app
	onTheWay  map[function]bool // of a message

	lines, codeLines, interfaces int
}

// function is a declared function or method.
type function struct {
	file      string // from the module's root
	name      string
	line, end int
}

func (f function) dir() string { return path.Dir(f.file) }

var lowerCase = regexp.MustCompile(`^[a-z][a-z0-9]*$`)

func (f function) oneWord() bool { return lowerCase.MatchString(f.name) && f.name != "main" }

// arrow is an import of one package or room by another.
type arrow struct{ from, to string }

// loadSource reads the module in dir.
func loadSource(t *testing.T, dir string) *source {
	t.Helper()
	files := must.Get(arch.Load(dir))(t)
	s := &source{files: map[string]int{}, arrows: map[arrow]bool{}}
	for _, f := range files {
		if f.Test() || f.Generated || f.Name != "main.go" && !inApp(f.Dir()) {
			continue
		}
		text := must.Get(os.ReadFile(filepath.Join(dir, f.Name)))(t)
		s.add(t, f, text)
	}
	return s
}

func inApp(dir string) bool { return dir == "app" || strings.HasPrefix(dir, "app/") }

// add counts a file.
func (s *source) add(t *testing.T, f arch.File, text []byte) {
	t.Helper()
	fset := token.NewFileSet()
	tree := must.Get(parser.ParseFile(fset, f.Name, text, parser.SkipObjectResolution))(t)
	s.files[f.Dir()]++
	if s.sizes == nil {
		s.sizes = map[string]int{}
	}
	s.sizes[f.Dir()] += f.Lines
	s.lines += f.Lines
	s.codeLines += countCode(text)
	for _, imported := range f.Imports {
		if inApp(imported) && inApp(f.Dir()) {
			s.arrows[arrow{f.Dir(), imported}] = true
		}
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			s.functions = append(s.functions, function{f.Name, n.Name.Name, fset.Position(n.Pos()).Line, fset.Position(n.End()).Line})
		case *ast.TypeSpec:
			if _, ok := n.Type.(*ast.InterfaceType); ok {
				s.interfaces++
			}
		}
		return true
	})
}

// countCode returns the number of lines that hold more than a comment.
func countCode(text []byte) int {
	var scan scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(text))
	scan.Init(file, text, nil, 0)
	lines := map[int]bool{}
	for pos, kind, literal := scan.Scan(); kind != token.EOF; pos, kind, literal = scan.Scan() {
		if kind == token.SEMICOLON && literal == "\n" {
			continue // the scanner adds it
		}
		for n := range strings.Count(literal, "\n") + 1 {
			lines[file.Line(pos)+n] = true
		}
	}
	return len(lines)
}

// figures returns what is counted without running anything.
func (s *source) figures() []figure {
	unexported, oneWord, participles, longest := 0, 0, 0, 0
	for _, f := range s.functions {
		longest = max(longest, f.end-f.line+1)
		if ast.IsExported(f.name) || f.name == "main" {
			continue
		}
		unexported++
		if f.oneWord() {
			oneWord++
		}
		if isParticiple(f.name) {
			participles++
		}
	}
	sizes := slices.Sorted(maps.Values(s.files))
	rooms := roomArrows(s.arrows)
	return []figure{
		{"lines", float64(s.lines), 88_000},
		{"lines of code, without comments and blanks", float64(s.codeLines), 0},
		{"packages", float64(len(s.files)), 52},
		{"files of the largest package", float64(sizes[len(sizes)-1]), 0},
		{"files of the median package", float64(sizes[len(sizes)/2]), 0},
		{"interfaces", float64(s.interfaces), 60},
		{"unexported functions and methods", float64(unexported), 0},
		{"named by one word", float64(oneWord), 0},
		{"named by one word, %", math.Round(1000*float64(oneWord)/float64(unexported)) / 10, 20},
		{"bare participles", float64(participles), 10},
		{"functions per 1,000 lines", math.Round(1000 * float64(len(s.functions)) / float64(s.lines)), 42},
		{"lines of the longest function", float64(longest), 0},
		{"imports between packages of app", float64(len(s.arrows)), 0},
		{"imports between folders of app", float64(len(rooms)), 0},
		{"imports between folders of app in a circle", float64(countCircular(rooms)), 0},
	}
}

// roomArrows returns the imports between the rooms, the folders of app.
func roomArrows(arrows map[arrow]bool) map[arrow]bool {
	room := func(dir string) string {
		parts := strings.Split(dir, "/")
		return strings.Join(parts[:min(2, len(parts))], "/")
	}
	rooms := map[arrow]bool{}
	for a := range arrows {
		if r := (arrow{room(a.from), room(a.to)}); r.from != r.to {
			rooms[r] = true
		}
	}
	return rooms
}

// countCircular returns how many arrows have a way back.
func countCircular(arrows map[arrow]bool) int {
	n := 0
	for a := range arrows {
		reached := []string{a.to}
		for i := 0; i < len(reached); i++ {
			for next := range arrows {
				if next.from == reached[i] && !slices.Contains(reached, next.to) {
					reached = append(reached, next.to)
				}
			}
		}
		if slices.Contains(reached, a.from) {
			n++
		}
	}
	return n
}

// isParticiple reports whether a name is a bare participle: an irregular one, or a word in
// -ed or -en that is no noun, verb or adverb.
func isParticiple(name string) bool {
	word := strings.TrimPrefix(name, "un")
	regular := lowerCase.MatchString(name) && (strings.HasSuffix(name, "ed") || strings.HasSuffix(name, "en"))
	return regular && !slices.Contains(otherWords(), name) || slices.Contains(irregularParticiples(), word)
}

func irregularParticiples() []string {
	return strings.Fields(`begun bought bound brought built caught dealt done drawn felt found gone grown heard held kept known
		laid led left lent lost made meant met paid said sent shown sold sought spent stood struck stuck swept taught
		thrown told took torn understood won worn`)
}

// otherWords only look like participles.
func otherWords() []string {
	return strings.Fields(`bed between bleed breed embed exceed feed heed indeed need proceed red seed shed speed succeed weed children
		deepen even fasten flatten gen golden happen harden len lengthen lighten listen loosen men often open pen pretoken
		qwen reopen screen seven sharpen shorten soften straighten strengthen ten then tighten token weaken when widen`)
}

// part is a part of app with its goal.
type part struct {
	name    string
	goal    float64  // lines
	folders []string // with those below them, but for those of another part
}

func parts() []part {
	return []part{
		{"core root, config, tokens, small ones", 8_600, []string{"app/core"}},
		{"core/llm", 7_200, []string{"app/core/llm"}},
		{"contextwindow, compaction", 6_700, []string{"app/core/contextwindow", "app/core/compaction"}},
		{"summarize, standing", 2_700, []string{"app/core/summarize", "app/core/standing"}},
		{"prompttext, redact", 1_200, []string{"app/core/prompttext", "app/core/redact"}},
		{"search", 1_900, []string{"app/core/searchtext", "app/core/relevance", "app/core/meaning"}},
		{"db", 13_500, []string{"app/db"}},
		{"conversation, live, readers, runs, events", 4_600, []string{"app/core/conversation", "app/live", "app/readers", "app/runs", "app/events"}},
		{"chat", 4_200, []string{"app/chat"}},
		{"api", 10_000, []string{"app/api"}},
		{"client", 700, []string{"app/client"}},
		{"slack", 4_300, []string{"app/slack"}},
		{"cli", 6_000, []string{"app/cli"}},
		{"agents with tools", 8_000, []string{"app/agents"}},
		{"eval", 2_100, []string{"app/eval"}},
		{"purge, ops, extract, telemetry, blobs, deliveries", 4_700, []string{"app/purge", "app/ops", "app/extract", "app/telemetry", "app/blobs", "app/deliveries"}},
		{"wire and app's own files", 1_600, []string{"app"}},
	}
}

// partFigures returns the lines of each part.
func (s *source) partFigures() []figure {
	all := parts()
	figures := make([]figure, len(all))
	for i, p := range all {
		figures[i] = figure{name: "lines of " + p.name, goal: p.goal}
	}
	for dir, lines := range s.sizes {
		best, at := "", -1
		for i, p := range all {
			for _, folder := range p.folders {
				if (dir == folder || strings.HasPrefix(dir, folder+"/")) && len(folder) > len(best) {
					best, at = folder, i
				}
			}
		}
		if at >= 0 {
			figures[at].value += float64(lines)
		}
	}
	return figures
}

func isTest(name string) bool {
	return strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "tests/") && strings.HasSuffix(name, ".go")
}

// isMoved reports whether the file was one of app: a smaller app is no deletion then.
func isMoved(name string) bool {
	return (strings.HasPrefix(name, "tests/slackfake/") || strings.HasPrefix(name, "tests/eval/")) && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go")
}

func isDocument(name string) bool {
	return strings.HasPrefix(name, "docs/") && strings.HasSuffix(name, ".md") || name == "README.md" || name == "CHANGELOG.md"
}

// countText counts how often the separator stands in the files that match; empty = words.
func countText(t *testing.T, dir string, matches func(name string) bool, separator string) (n float64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules" || d.Name() == "venv") {
			return filepath.SkipDir
		}
		name, err := filepath.Rel(dir, file)
		if err != nil || d.IsDir() || !matches(filepath.ToSlash(name)) {
			return err
		}
		text, err := os.ReadFile(file)
		if separator == "" {
			n += float64(len(strings.Fields(string(text))))
		} else {
			n += float64(strings.Count(string(text), separator))
		}
		return err
	})
	must.Do(t, err)
	return n
}
