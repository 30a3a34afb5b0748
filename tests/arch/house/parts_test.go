package house_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bobbin/tests/must"
)

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
