package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// findTests returns the tests of a folder that draw random numbers, and its fuzz targets. A test
// draws if its body names something of package seed that a seed changes, or something of its own
// package that does. Names are compared, not what they stand for, so a test too many may be among
// them.
func findTests(dir string) (tests, targets []string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return nil, nil, err
	}
	names := map[string]map[string]bool{} // what a declaration mentions
	random := map[string]bool{}           // declarations that draw
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, nil, err
		}
		for _, d := range tree.Decls {
			name, mentioned, draws := inspectDeclaration(d)
			if names[name] == nil {
				names[name] = map[string]bool{}
			}
			maps.Copy(names[name], mentioned)
			random[name] = random[name] || draws
		}
	}
	delete(names, "") // imports, types
	for changed := true; changed; {
		changed = false
		for name, mentioned := range names {
			for other := range mentioned {
				if !random[name] && random[other] {
					random[name], changed = true, true
				}
			}
		}
	}
	for name := range names {
		switch {
		case strings.HasPrefix(name, "Fuzz"):
			targets = append(targets, name)
		case random[name] && strings.HasPrefix(name, "Test") && name != "TestMain":
			tests = append(tests, name)
		}
	}
	slices.Sort(tests)
	slices.Sort(targets)
	return tests, targets, nil
}

// inspectDeclaration returns the name of a function, method or variable, the names it mentions,
// and whether it draws from package seed.
func inspectDeclaration(d ast.Decl) (name string, mentioned map[string]bool, draws bool) {
	mentioned = map[string]bool{}
	switch d := d.(type) {
	case *ast.FuncDecl:
		name = d.Name.Name
	case *ast.GenDecl:
		if d.Tok == token.VAR {
			name = d.Specs[0].(*ast.ValueSpec).Names[0].Name
		}
	}
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "seed" && n.Sel.Name != "Fixed" {
				draws = true
			}
		case *ast.Ident:
			mentioned[n.Name] = true
		}
		return true
	})
	return name, mentioned, draws
}
