package eval_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/eval"
	"bobbin/tests/compare"
)

// planting returns the message with facts in its metadata.
func planting(m core.Message, facts string) core.Message {
	m.Metadata = json.RawMessage(`{"facts":` + facts + `}`)
	return m
}

func TestReadFacts(t *testing.T) {
	t.Parallel()
	three := []eval.Fact{{Kind: "path", Text: "go.mod"}, {Kind: "fact", Text: "note: this"}, {Kind: "name", Text: "Ann"}}
	tests := []struct {
		name, text string
		want       []eval.Fact
		fault      string
	}{
		{"lines", "\uFEFFpath: go.mod\n\n# no\nnote: this\n name:Ann \npath: GO.MOD\n", three, ""},
		{"list", `[{"kind":"path","text":"go.mod"}, "note: this", "name: Ann"]`, three, ""},
		{"questions", `[{"text":"go.mod","ask":" Which file? "}, "the key", {"text":"The Key","ask":"What opens it?"}]`,
			[]eval.Fact{{Kind: "fact", Text: "go.mod", Ask: "Which file?"}, {Kind: "fact", Text: "the key", Ask: "What opens it?"}}, ""},
		{"question that says it", `["x", {"text":"Blue House","ask":"Is it the blue  house?"}]`, nil, `fact 2 has a question that says the fact itself, so that finding it proves nothing; ask in other words`},
		{"long question", `[{"text":"x","ask":"` + strings.Repeat("y", 501) + `"}]`, nil, "fact 1 has a question of 501 bytes; at most 500 are allowed"},
		{"nothing", " \n", nil, ""},
		{"empty fact", "path:\n", nil, "line 1 of the list of facts is empty"},
		{"long", "x\n" + strings.Repeat("y", 501), nil, "line 2 of the list of facts has 501 bytes; at most 500 are allowed"},
		{"unknown kind", `["x", {"kind":"color","text":"red"}]`, nil, `fact 2 is of no known kind: "color"; use one of path, command`},
		{"no list", `[`, nil, "the list of facts: unexpected end"},
		{"number", `[7]`, nil, `a fact is a text, or {"kind"`},
		{"large", strings.Repeat("x", 1<<20+1), nil, "larger than 1048576 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := eval.ReadFacts(strings.NewReader(tt.text))
			if tt.fault != "" {
				compare.True(t, err != nil && strings.Contains(err.Error(), tt.fault), "got %v, want an error that says %q", err, tt.fault)
				return
			}
			diff := cmp.Diff(tt.want, got)
			compare.True(t, diff == "" && err == nil, "%v; facts (-want +got):\n%s", err, diff)
		})
	}
}

func TestPlantedFacts(t *testing.T) {
	t.Parallel()
	said := []core.Message{
		planting(user("My name is Ann\n Lee"), `["name: Ann Lee"]`),
		planting(says("", core.ToolCall{ID: "c", Name: "run", Arguments: `{"command":"grep \"x\" a.go"}`}), `[{"kind":"command","text":"grep \"x\" a.go"}]`),
		planting(user("again: ann lee"), `["name: ann lee"]`),
	}
	got, err := eval.PlantedFacts(said)
	want := []eval.Fact{{Kind: "name", Text: "Ann Lee"}, {Kind: "command", Text: `grep "x" a.go`}}
	diff := cmp.Diff(want, got)
	compare.True(t, diff == "" && err == nil, "%v; facts (-want +got):\n%s", err, diff)
}

// The ledger's facts stand in the conversation, and are at most 500, from all of it.
func TestLedgerFacts(t *testing.T) {
	t.Parallel()
	var said []core.Message
	for i := range 2000 {
		said = append(said, user(fmt.Sprintf("look at pkg%d/file%d.go", i, i)))
	}
	got := eval.LedgerFacts(said)
	if len(got) != 500 || eval.CheckFacts(got, said) != nil {
		t.Fatalf("got %d facts, %v, want 500 that are said", len(got), eval.CheckFacts(got, said))
	}
	last := got[499].Text
	compare.True(t, strings.HasPrefix(last, "pkg199"), "got %s as the last, want one of the end", last)
}
