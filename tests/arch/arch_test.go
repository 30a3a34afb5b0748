package arch_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"bobbin/tests/arch"
	"bobbin/tests/compare"
	"bobbin/tests/golden"
	"bobbin/tests/must"
)

// TestHouse judges the source of this module.
func TestHouse(t *testing.T) {
	t.Parallel()
	files := must.Get(arch.Load("../.."))(t)
	must.True(t, len(files) >= 20, "got %d files, want the whole module: is the test in another folder now?", len(files))
	for _, sentence := range append(arch.CheckImports(files), arch.CheckFiles(files)...) {
		t.Error(sentence)
	}
}

const requirementsFile = "../../docs/REQUIREMENTS.md"

var (
	requirementRow = regexp.MustCompile(`(?m)^\| ([A-Z][0-9]+) \| (.*) \| (.*) ?\|$`)
	requirementID  = regexp.MustCompile(`(?:^|[^-\w])([WLBRCS][0-9]{1,2})\b`)
	deadReference  = regexp.MustCompile(`\b(CONTEXT|ENGINE|LIBRARIES|CONVENTIONS|WEB_PROTOCOLS|LANGGRAPH|SLACK),? §|\b[Ii]ssue [0-9]|\b[Ii]ssue "`)
)

// TestRequirements holds docs/REQUIREMENTS.md against the tests: each requirement is named
// in the comment of a test, the table has the tests that name it, and no comment of the
// program cites a requirement, or a paper, that is not there.
func TestRequirements(t *testing.T) {
	t.Parallel()
	data := must.Get(os.ReadFile(requirementsFile))(t)
	proofs, cited := readReferences(t, "../..")
	known := map[string]bool{}
	want := requirementRow.ReplaceAllStringFunc(string(data), func(line string) string {
		row := requirementRow.FindStringSubmatch(line)
		known[row[1]] = true
		names := proofs[row[1]]
		slices.Sort(names)
		if len(names) == 0 {
			t.Errorf("no test names the requirement %s in a comment", row[1])
		}
		return fmt.Sprintf("| %s | %s | %s |", row[1], row[2], strings.Join(names, ", "))
	})
	for id, place := range cited {
		compare.True(t, known[id], "%s cites %s, which is not in docs/REQUIREMENTS.md", place, id)
	}
	golden.Check(t, requirementsFile, want)
}

// readReferences returns the tests that name each requirement, and for each id one place
// that cites it. Comments that cite papers outside of the repository fail the test.
func readReferences(t *testing.T, root string) (proofs map[string][]string, cited map[string]string) {
	t.Helper()
	proofs, cited = map[string][]string{}, map[string]string{}
	for _, f := range must.Get(arch.Load(root))(t) {
		path := filepath.Join(root, f.Name)
		if strings.HasPrefix(f.Name, "tests/arch/") {
			continue
		}
		file := must.Get(parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments))(t)
		for _, group := range file.Comments {
			if dead := deadReference.FindString(group.Text()); dead != "" {
				t.Errorf("%s: a comment cites %q, which is not in the repository: say the fact", path, dead)
			}
			for _, match := range requirementID.FindAllStringSubmatch(group.Text(), -1) {
				id := match[1]
				cited[id] = path
				name := testOf(file, group)
				if strings.HasSuffix(path, "_test.go") && name != "" && !slices.Contains(proofs[id], name) {
					proofs[id] = append(proofs[id], name)
				}
			}
		}
	}
	return proofs, cited
}

// testOf returns the package and name of the test that the comment documents or is in; empty = none.
func testOf(file *ast.File, comment *ast.CommentGroup) string {
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		isTest := ok && (strings.HasPrefix(f.Name.Name, "Test") || strings.HasPrefix(f.Name.Name, "Fuzz"))
		if isTest && comment.Pos() < f.End() && (f.Doc == comment || comment.Pos() > f.Pos()) {
			return strings.TrimSuffix(file.Name.Name, "_test") + "." + f.Name.Name
		}
	}
	return ""
}

// W1, W11: memories live outside the agent graph. Nothing that makes an agent's
// answer reaches them, not even through another package of ours.
func TestNoNodeReadsMemories(t *testing.T) {
	t.Parallel()
	files := must.Get(arch.Load("../.."))(t)
	imports := map[string][]string{} // by folder
	for _, f := range files {
		if !f.Test() {
			imports[f.Dir()] = append(imports[f.Dir()], f.Imports...)
		}
	}
	must.True(t, slices.Contains(imports["app/chat/memories"], "app/core/llm"), "app/chat/memories does not embed: are memories in another folder now?")
	for dir := range imports {
		maker := slices.ContainsFunc([]string{"app/agents", "app/chat", "app/runs", "app/core/compaction", "app/core/contextwindow", "app/core/summarize"},
			func(part string) bool { return dir == part || strings.HasPrefix(dir, part+"/") })
		if path := way(imports, dir, "app/chat/memories"); maker && dir != "app/chat/memories" && path != nil {
			t.Errorf("%s reaches memories: %s", dir, strings.Join(path, " → "))
		}
	}
}

// way returns a chain of imports from one folder to another, nil if there is none.
func way(imports map[string][]string, from, to string) []string {
	before := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		if queue[0] == to {
			var path []string
			for at := to; at != ""; at = before[at] {
				path = append([]string{at}, path...)
			}
			return path
		}
		for _, next := range imports[queue[0]] {
			if _, seen := before[next]; !seen {
				before[next] = queue[0]
				queue = append(queue, next)
			}
		}
	}
	return nil
}
