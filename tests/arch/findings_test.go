package arch_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
)

// closedPart is the last part of the plan whose findings must all be held by a test.
const closedPart = 10

// finding is a row of testdata/findings.txt.
type finding struct {
	id    string
	part  int
	title string
}

// TestShowReviews lists each finding of the reviews with the tests that hold it. It
// fails for a finding of a closed part that no test names, and for a test that names
// a finding that does not exist.
func TestShowReviews(t *testing.T) {
	t.Parallel()
	all := readFindings(t, filepath.Join("testdata", "findings.txt"))
	held := findingTests(t, "../..")
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	open := 0
	for _, f := range all {
		tests := held[f.id]
		delete(held, f.id)
		if len(tests) == 0 {
			open++
			if f.part <= closedPart {
				t.Errorf("no test names %s (%s): write \"// Finding: %s\" at the test that holds it", f.id, f.title, f.id)
			}
			tests = []string{"(open)"}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", f.id, f.title, strings.Join(tests, ", "))
	}
	for _, id := range slices.Sorted(maps.Keys(held)) {
		t.Errorf("%s name the finding %s, which is not in testdata/findings.txt", held[id], id)
	}
	_ = w.Flush() // a strings.Builder takes everything
	t.Logf("%d findings, %d without a test\n%s", len(all), open, table.String())
}

// readFindings reads the table of findings.
func readFindings(t *testing.T, file string) []finding {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []finding
	seen := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		part, err := strconv.Atoi(fields[min(1, len(fields)-1)])
		if err != nil || len(fields) < 3 || seen[fields[0]] {
			t.Fatalf("%s: want a new id, a part and a title: %q", file, line)
		}
		seen[fields[0]] = true
		all = append(all, finding{id: fields[0], part: part, title: strings.Join(fields[2:], " ")})
	}
	return all
}

// findingIDs matches the ids after "Finding:" or "Findings:" in a comment.
var findingIDs = regexp.MustCompile(`\b(?:security|runs|context|users|house|performance)-[A-F]?\d+\b`)

// findingTests returns the names of the tests under root by the findings that they name.
func findingTests(t *testing.T, root string) map[string][]string {
	t.Helper()
	held := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		for _, group := range file.Comments {
			for _, comment := range group.List {
				_, ids, named := strings.Cut(comment.Text, "Finding:")
				if !named {
					continue
				}
				name := testAt(file, group)
				for _, id := range findingIDs.FindAllString(ids, -1) {
					if !slices.Contains(held[id], name) {
						held[id] = append(held[id], name)
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return held
}

// testAt returns the package and name of the function that the comment documents or is in.
func testAt(file *ast.File, comment *ast.CommentGroup) string {
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if ok && comment.Pos() < f.End() && (f.Doc == comment || comment.Pos() > f.Pos()) {
			return strings.TrimSuffix(file.Name.Name, "_test") + "." + f.Name.Name
		}
	}
	return file.Name.Name
}
