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

func user(text string) core.Message { return core.Message{Role: core.RoleUser, Content: text} }

func says(text string, calls ...core.ToolCall) core.Message {
	return core.Message{Role: core.RoleAssistant, Content: text, ToolCalls: calls}
}

func result(id, text string) core.Message {
	return core.Message{Role: core.RoleTool, ToolCallID: id, Content: text}
}

func system(text string) core.Message { return core.Message{Role: core.RoleSystem, Content: text} }

func call(id, name string) core.ToolCall { return core.ToolCall{ID: id, Name: name, Arguments: "{}"} }

// outline writes a conversation in short: q = question, a = answer, c = answer with
// calls, t = result, r = the rest.
func outline(c eval.Conversation) string {
	var b strings.Builder
	if c.System != "" {
		fmt.Fprintf(&b, "[%s] ", c.System)
	}
	for _, m := range c.Opening {
		fmt.Fprintf(&b, "o:%s ", m.Content)
	}
	for _, t := range c.Turns {
		fmt.Fprintf(&b, "q:%s ", t.Question.Content)
		for _, s := range t.Steps {
			fmt.Fprintf(&b, "a:%s ", s.Answer.Content)
			for i, r := range s.Results {
				fmt.Fprintf(&b, "%s(%s)=%s ", s.Answer.ToolCalls[i].Name, r.ToolCallID, r.Content)
			}
		}
		for _, m := range t.Rest {
			fmt.Fprintf(&b, "r:%s ", m.Content)
		}
	}
	return strings.TrimSpace(b.String())
}

func TestSplit(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		messages []core.Message
		want     string
		standIns int
	}{
		{"nothing", nil, "", 0},
		{"talk", []core.Message{user("1"), says("one"), user("2"), says("two")}, "q:1 a:one q:2 a:two", 0},
		{"system", []core.Message{system(" be "), system("kind"), user("1"), system("late"), says("one")}, "[be\n\nkind] q:1 a:one", 0},
		{"nobody asked", []core.Message{says("hello"), user("1"), says("one")}, "o:hello q:1 a:one", 0},
		{"nobody answered", []core.Message{user("1"), user("2"), says("two"), user("3")}, "q:1 q:2 a:two q:3", 0},
		{"two answers", []core.Message{user("1"), says("one"), says("more"), says("and", call("x", "f")), result("x", "y")}, "q:1 a:one r:more r:and r:y", 0},
		{"loop", []core.Message{user("1"), says("", call("x", "f"), call("y", "g")), result("y", "Y"), result("x", "X"), says("one")},
			"q:1 a: f(x)=X g(y)=Y a:one", 0},
		{"a system row between", []core.Message{user("1"), says("", call("x", "f")), system("s"), result("x", "X"), says("one")}, "q:1 a: f(x)=X a:one", 0},
		{"no result", []core.Message{user("1"), says("", call("x", "f")), says("one")}, "q:1 a: f(x)=[no result was recorded] a:one", 1},
		{"broken off", []core.Message{user("1"), says("", call("x", "f")), result("x", "X"), user("2"), says("two")}, "q:1 a: f(x)=X a:[no answer was recorded] q:2 a:two", 1},
		{"broken off at the end", []core.Message{user("1"), says("", call("x", "f"))}, "q:1 a: f(x)=[no result was recorded] a:[no answer was recorded]", 2},
		{"ids come again", []core.Message{user("1"), says("", call("x", "f"), call("x", "f")), result("x", "X"), result("x", "Y"), says("one"),
			user("2"), says("", call("x", "f"), call("x_2", "f")), result("x_2", "B"), result("x", "A"), says("two")},
			"q:1 a: f(x)=X f(x_2)=Y a:one q:2 a: f(x_3)=A f(x_2_2)=B a:two", 0},
		{"names of tools", []core.Message{user("1"), says("", call("x", "my tool.v2")), result("x", "X"), says("one")}, "q:1 a: my_tool_v2(x)=X a:one", 0},
		{"thoughts alone", []core.Message{user("1"), {Role: core.RoleAssistant, Parts: []core.Part{{Type: "reasoning", Text: "hm"}}}, user("2"), says("two")}, "q:1 r: q:2 a:two", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := eval.Split(tt.messages)
			diff := cmp.Diff(tt.want, outline(got))
			compare.Equal(t, "stand-ins; outline (-want +)", []any{"", tt.standIns}, []any{diff, got.StandIns})
		})
	}
}

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
