package house_test

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
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
