package summarize_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/summarize"
	"bobbin/tests/golden"
	"bobbin/tests/must"
)

// readTranscript reads a conversation of testdata/transcripts: "=== role tool" begins a
// message, "--- call tool {…}" is a call of it.
func readTranscript(t *testing.T, file string) []core.Message {
	t.Helper()
	raw := must.Get(os.ReadFile(file))(t)
	var all []core.Message
	var open []string // calls without a result
	for line := range strings.Lines(string(raw)) {
		if head, ok := strings.CutPrefix(line, "=== "); ok {
			f := strings.Fields(head)
			m := user(int64(len(all)+1), "")
			m.Role = core.Role(f[0])
			if m.Role == core.RoleTool {
				m.ToolName = f[1]
				if len(open) > 0 {
					m.ToolCallID, open = open[0], open[1:]
				}
			}
			all = append(all, m)
			continue
		}
		m := &all[len(all)-1]
		if call, ok := strings.CutPrefix(line, "--- call "); ok {
			name, args, _ := strings.Cut(strings.TrimSpace(call), " ")
			id := "call_" + name + string(rune('a'+len(m.ToolCalls))) + string(m.ID)
			m.ToolCalls = append(m.ToolCalls, core.ToolCall{ID: id, Name: name, Arguments: args})
			open = append(open, id)
			continue
		}
		m.Content += line
	}
	for i := range all {
		all[i].Content = strings.TrimSuffix(all[i].Content, "\n")
	}
	return all
}

// What code extracts from conversations as they are held: with a coding agent and its
// shell, about documents, on Windows, about a cluster; stack traces of Go, Python,
// JavaScript and Java. The ledgers in testdata/transcripts are to be read: what
// stands there is what the model is told, what is missing it has to look up.
func TestLedgerOfTranscripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/transcripts/*.txt")
	if err != nil || len(files) < 5 {
		t.Fatalf("got %d transcripts, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			req := summarize.Request{Messages: readTranscript(t, file), Limit: 20_000}
			_, ledger, _ := strings.Cut(extract(t, req).Content, "\n\n## Files Referenced")
			golden.Check(t, strings.TrimSuffix(file, ".txt")+".ledger", "## Files Referenced"+ledger+"\n")
		})
	}
}
