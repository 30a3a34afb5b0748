package summarize

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"bobbin/app/core"
)

// Names, numbers and paths that nobody said are counted, and five of them shown; what is
// in a message, in a tool call or in the summary before is not.
//
// Finding: context-F4
func TestUnsupportedFacts(t *testing.T) {
	t.Parallel()
	req := Request{Previous: "The budget is 14,000 pounds; Priya knows a joiner.", Messages: []core.Message{
		{Seq: 41, Role: core.RoleUser, Content: "Marlow Joinery comes on 9 September and wants 6.200 pounds for app/main.go."},
		{Seq: 42, Role: core.RoleAssistant, ToolCalls: []core.ToolCall{{Name: "read_file", Arguments: `{"path":"internal/upload/client.go"}`}}},
		{Seq: 43, Role: core.RoleTool, ToolName: "read_file", Content: "timeout = 45"},
	}}
	long := "deploy/" + strings.Repeat("folder/", 40) + "x.yaml"
	for name, tt := range map[string]struct {
		text  string
		count int
		want  []string
	}{
		"everything is said": {"The joiner Marlow, whom Priya named, wants 6200 of 14.000 pounds for app/main.go and client.go [42]; the timeout is 45.", 0, nil},
		"a name":             {"The joiner Hollis comes in September, because nobody else had time for the kitchen before.", 1, []string{"Hollis"}},
		"headings":           {"## Conversation Summary\n\n**Open Questions:** the timeout of the upload, and whether it is raised.\n### Files Referenced\n- app/main.go", 0, nil},
		"a number":           {"They want 85 pounds.", 1, []string{"85"}},
		"a path":             {"The timeout is in internal/server/http.go.", 1, []string{"internal/server/http.go"}},
		"no path":            {"Yes and/or no, he/she said.", 0, nil},
		"each once":          {"The user heard that Hollis wants 85; then 85 it is, and nobody else but Hollis has time for the kitchen.", 2, []string{"Hollis", "85"}},
		"five are shown":     {"It costs 11, 12, 13, 16, 17, 18 or 19.", 7, []string{"11", "12", "13", "16", "17"}},
		"a long one":         {"Look at " + long, 1, nil},
		"all nouns":          {"Der Kunde will vom Betrieb Hollis eine Platte aus Holz für 85 Euro.", 1, []string{"85"}},
		"Chinese":            {"用户预算是两万四千元，电话是 5550199。", 1, []string{"5550199"}},
	} {
		got := unsupportedIn(tt.text, req)
		if got == nil {
			got = &core.Unsupported{}
		}
		if tt.want == nil && got.Count == 1 {
			if e := got.Examples[0]; len(e) > exampleSize || !strings.HasPrefix(long, e[:20]) {
				t.Errorf("%s: got %q, want it cut", name, e)
			}
			continue
		}
		if got.Count != tt.count || !slices.Equal(got.Examples, tt.want) {
			t.Errorf("%s: got %d, %q, want %d, %q", name, got.Count, got.Examples, tt.count, tt.want)
		}
	}
	var numbers strings.Builder
	for i := range 5_000 {
		fmt.Fprintf(&numbers, "%d ", 100_000+i)
	}
	if got := unsupportedIn(numbers.String(), req); got.Count != maxFacts || len(got.Examples) != maxExamples {
		t.Errorf("got %d of many, want %d", got.Count, maxFacts)
	}
}
