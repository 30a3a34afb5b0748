package arch

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Module is the name of the Go module; imports that begin with it are our own.
const Module = "bobbin"

// File is what the rules need to know of a Go file.
type File struct {
	Name       string   // slash-separated path from the module's root
	Imports    []string // as written; our own packages without the module's name, "." = the root
	Lines      int
	Generated  bool
	CallsSleep bool     // calls time.Sleep
	Draws      []string // what draws random numbers, as it is called: "rand.New"
}

// Dir returns the folder of the file, "." for the module's root.
func (f File) Dir() string { return path.Dir(f.Name) }

// InTests reports whether tests alone use the file: it is one, or belongs to their helpers.
func (f File) InTests() bool { return f.Test() || strings.HasPrefix(f.Name, "tests/") }

// Test reports whether the file belongs to a test.
func (f File) Test() bool { return strings.HasSuffix(f.Name, "_test.go") }

// Load parses every Go file below root, apart from folders that the go tool
// leaves out too: testdata, vendor, and names that begin with a dot or a line.
func Load(root string) ([]File, error) {
	var files []File
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != root && skipped(entry.Name()):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return fmt.Errorf("load %s: %w", name, err)
		}
		file, err := loadFile(name, filepath.ToSlash(rel))
		if err != nil {
			return err
		}
		files = append(files, file)
		return nil
	})
	return files, err
}

func skipped(dir string) bool {
	return slices.Contains([]string{"testdata", "vendor", "node_modules"}, dir) || strings.HasPrefix(dir, ".") || strings.HasPrefix(dir, "_")
}

func loadFile(name, rel string) (File, error) {
	source, err := os.ReadFile(name)
	if err != nil {
		return File{}, fmt.Errorf("load %s: %w", rel, err)
	}
	return ParseFile(rel, source)
}

// ParseFile reads one file's source; name is its path from the module's root.
func ParseFile(name string, source []byte) (File, error) {
	tree, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return File{}, fmt.Errorf("parse: %w", err)
	}
	f := File{
		Name:      name,
		Lines:     bytes.Count(source, []byte("\n")),
		Generated: ast.IsGenerated(tree),
	}
	for _, spec := range tree.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return File{}, fmt.Errorf("parse %s: import %s: %w", name, spec.Path.Value, err)
		}
		f.Imports = append(f.Imports, ownName(imported))
	}
	ast.Inspect(tree, func(n ast.Node) bool { inspect(&f, n); return true })
	return f, nil
}

// ownName returns the path of one of our own packages from the module's root,
// and any other import as it is.
func ownName(imported string) string {
	if imported == Module {
		return "."
	}
	return strings.TrimPrefix(imported, Module+"/")
}

func inspect(f *File, n ast.Node) {
	sel, ok := n.(*ast.SelectorExpr)
	if !ok {
		return
	}
	if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" && sel.Sel.Name == "Sleep" {
		f.CallsSleep = true
	}
	if call := drawing(f, sel); call != "" && !slices.Contains(f.Draws, call) {
		f.Draws = append(f.Draws, call)
	}
}

// drawing returns what a selector draws random numbers with; empty = it does not. What
// crypto/rand makes are keys, on which no test depends.
func drawing(f *File, n *ast.SelectorExpr) string {
	switch x := n.X.(type) {
	case *ast.Ident:
		name := x.Name + "." + n.Sel.Name
		random := slices.Contains(f.Imports, "math/rand") || slices.Contains(f.Imports, "math/rand/v2")
		if x.Name == "rand" && random && !slices.Contains([]string{"Rand", "Source"}, n.Sel.Name) ||
			slices.Contains([]string{"rapid.Check", "rapid.MakeCheck"}, name) {
			return name
		}
	case *ast.CallExpr: // a seed that is the time
		now, ok := x.Fun.(*ast.SelectorExpr)
		if ok && now.Sel.Name == "Now" && n.Sel.Name == "UnixNano" {
			return "time.Now().UnixNano"
		}
	}
	return ""
}

// CheckFiles returns a sentence for every test that sleeps, or draws random numbers that
// do not come from package seed. Sorted.
func CheckFiles(files []File) []string {
	var breaches []string
	for _, f := range files {
		if f.Test() && f.CallsSleep && !slices.Contains(f.Imports, "testing/synctest") {
			breaches = append(breaches, fmt.Sprintf("%s calls time.Sleep: wait for a signal, or run the test in testing/synctest", f.Name))
		}
		if f.InTests() && len(f.Draws) > 0 && !slices.Contains(drawers(), f.Dir()) {
			breaches = append(breaches, fmt.Sprintf("%s calls %s: take random numbers from package tests/seed, so that BOBBIN_TEST_SEED repeats them", f.Name, strings.Join(f.Draws, ", ")))
		}
	}
	slices.Sort(breaches)
	return breaches
}
