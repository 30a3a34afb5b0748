package eval_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/eval"
	"bobbin/tests/compare"
	"bobbin/tests/must"
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
				if err == nil || !strings.Contains(err.Error(), tt.fault) {
					t.Errorf("got %v, want an error that says %q", err, tt.fault)
				}
				return
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("%v; facts (-want +got):\n%s", err, diff)
			}
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
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v; facts (-want +got):\n%s", err, diff)
	}
}

// What is wrong with planted facts is said with the message that plants them.
func TestPlantedFaults(t *testing.T) {
	t.Parallel()
	for facts, want := range map[string]string{
		`["something else"]`: `message 2 does not say its metadata.facts[0]: "something else"`,
		`7`:                  "message 2: metadata.facts: json",
		`[""]`:               "message 2: metadata.facts[0] is empty",
	} {
		_, err := eval.PlantedFacts([]core.Message{user("1"), planting(says("one"), facts)})
		if !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", facts, err, want)
		}
	}
}

func TestCheckFacts(t *testing.T) {
	t.Parallel()
	said := []core.Message{system("secret"), user("I like\tred  apples")}
	compare.Error(t, "err: want that blanks and case do not count", nil, eval.CheckFacts([]eval.Fact{{Kind: "fact", Text: "like Red apples"}}, said))
	for _, text := range []string{"pears", "secret"} {
		if err := eval.CheckFacts([]eval.Fact{{Kind: "fact", Text: text}}, said); !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v of %s, want that no message says it", err, text)
		}
	}
	compare.Error(t, "of 501 facts: want too many", core.ErrInvalid, eval.CheckFacts(make([]eval.Fact, 501), said))
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
	if last := got[499].Text; !strings.HasPrefix(last, "pkg199") {
		t.Errorf("got %s as the last, want one of the end", last)
	}
}

// found returns n quotations, of which the last one is the text.
func found(n int, text string) []string {
	quotes := make([]string, n)
	for i := range quotes {
		quotes[i] = fmt.Sprint("something else ", i)
	}
	quotes[n-1] = text
	return quotes
}

// Search is asked a fact's question, never its words, and each fact counts in the first
// place that has it.
func TestSearchIsAskedTheQuestion(t *testing.T) {
	t.Parallel()
	s := &stub{quotes: map[string][]string{
		"the key is 4711": {"the key is 4711"}, // what the fact says finds the fact: no news
		"which house?":    {"we took the blue house"},
		"how to clean?":   found(5, `run rm -rf  "X" now`),
		"who came?":       found(6, "Ann came"),
		"who left?":       found(21, "Ben left"),
		"who stayed?":     found(3, "nobody"),
	}}
	facts := []eval.Fact{
		{Kind: "fact", Text: "hello there"},
		{Kind: "fact", Text: "the Blue house", Ask: "which house?"},
		{Kind: "command", Text: `rm -rf "x"`, Ask: "how to clean?"},
		{Kind: "name", Text: "Ann", Ask: "who came?"},
		{Kind: "name", Text: "Ben", Ask: "who left?"},
		{Kind: "name", Text: "Cid", Ask: "who stayed?"},
		{Kind: "fact", Text: "the key is 4711"},
	}
	got := must.Get(replay(t, s, facts, says("hello there"), user("1"), says("one")))(t)
	want := eval.Found{
		Planted: 7, Asked: 5, Reachable: 4, Prompt: 1, Summary: 1, First5: 1, First20: 1,
		Unreachable: facts[4:], SearchAlone: eval.Ranked{First5: 2, First20: 3},
	}
	compare.Equal(t, "facts", want, got.Facts)
	compare.Equal(t, "queries", []string{"which house?", "how to clean?", "who came?", "who left?", "who stayed?"}, s.queries)
}

// An agent without search_history does not reach what it does not see.
func TestReplayWithoutSearch(t *testing.T) {
	t.Parallel()
	got, err := replay(t, &stub{unable: true, quotes: map[string][]string{"where?": {"elsewhere"}}}, []eval.Fact{{Kind: "fact", Text: "elsewhere", Ask: "where?"}}, user("1"), says("one"))
	if err != nil || got.Facts.Reachable != 0 || len(got.Facts.Unreachable) != 1 {
		t.Errorf("got %+v, %v, want it out of reach", got.Facts, err)
	}
}

// What stands in a summary, or in notes on a tool loop, is in the summary, whatever the
// role in which a prompt has it.
func TestSummaryOfEachRole(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"summary": "<conversation_summary>\nthe gray house\n</conversation_summary>",
		"notes":   "<work_notes>\nthe gray house\n</work_notes>",
	} {
		got, err := replay(t, &stub{}, []eval.Fact{{Kind: "fact", Text: "the gray house"}}, user(text), says("one"))
		if err != nil || got.Facts.Summary != 1 {
			t.Errorf("%s: got %+v, %v, want the fact in the summary", name, got.Facts, err)
		}
	}
}
