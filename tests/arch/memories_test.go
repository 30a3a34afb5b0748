package arch_test

import (
	"slices"
	"strings"
	"testing"

	"bobbin/tests/arch"
)

// W1, W11: memories live outside the agent graph. Nothing that makes an agent's
// answer reaches them, not even through another package of ours.
func TestNoNodeReadsMemories(t *testing.T) {
	t.Parallel()
	files, err := arch.Load("../..")
	if err != nil {
		t.Fatalf("load the source: %v", err)
	}
	imports := map[string][]string{} // by folder
	for _, f := range files {
		if !f.Test() {
			imports[f.Dir()] = append(imports[f.Dir()], f.Imports...)
		}
	}
	if !slices.Contains(imports["app/chat/memories"], "app/core/llm") {
		t.Fatal("app/chat/memories does not embed: are memories in another folder now?")
	}
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
