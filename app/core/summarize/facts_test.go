package summarize_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/summarize"
)

// Facts are those of the ledger, once each, in the order in which they were said last.
func TestFacts(t *testing.T) {
	t.Parallel()
	long := "ERROR: " + strings.Repeat("very ", 100) + "long"
	got := summarize.Facts([]core.Message{
		user(1, "Look at go.mod and main.go, see https://go.dev/ref/mod"),
		assistant(2, "", core.ToolCall{ID: "c", Name: "run", Arguments: `{"command":"go  build ./..."}`}),
		{Role: core.RoleTool, Seq: 3, ToolCallID: "c", Content: "main.go:3:1: error: expected declaration\n" + long},
		{Role: core.RoleSystem, Seq: 4, Content: "secret.go"},
	})
	want := []summarize.Fact{
		{Kind: summarize.FactPath, Text: "go.mod"},
		{Kind: summarize.FactURL, Text: "https://go.dev/ref/mod"},
		{Kind: summarize.FactCommand, Text: "go build ./..."},
		{Kind: summarize.FactError, Text: "main.go:3:1: error: expected declaration"},
		{Kind: summarize.FactPath, Text: "main.go"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
	if got := summarize.Facts(nil); len(got) != 0 {
		t.Errorf("got %v of nothing, want none", got)
	}
}
