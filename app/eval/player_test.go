package eval

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/tests/compare"
	"bobbin/tests/must"
	"bobbin/tests/seed"
)

// words counts words, so that tests can count along.
type words struct{}

func (words) Text(s string) int { return len(strings.Fields(s)) }

func (words) Message(m core.Message) int {
	n := 4 + len(strings.Fields(m.Content))
	for _, c := range m.ToolCalls {
		n += len(strings.Fields(c.Arguments))
	}
	return n
}

func (words) Tools(list []llm.ToolSpec) int { return 10 * len(list) }

func talk(texts ...string) []llm.Message {
	var list []llm.Message
	for i, text := range texts {
		list = append(list, llm.Message{Role: []core.Role{core.RoleUser, core.RoleAssistant}[i%2], Content: text})
	}
	return list
}

func TestMeasure(t *testing.T) {
	t.Parallel()
	m := newMeter(words{}, 2)
	first, fixed := m.measurePrompt(llm.Request{System: []string{"be kind"}, Messages: talk("one two"), Tools: []llm.ToolSpec{{Name: "f"}}})
	// 10 of the tool, 2+4 of the system, 2+4 of the message, 3 of the list; twice.
	compare.Equal(t, "fixed: want 50 tokens, 19 fixed, none cached", []int{50, 19, 0, 0}, []int{first.Tokens, fixed, first.CachedTokens, first.CachedBytes})
	again, _ := m.measurePrompt(llm.Request{System: []string{"be kind"}, Messages: talk("one two", "three"), Tools: []llm.ToolSpec{{Name: "f"}}})
	compare.Equal(t, "want 60 tokens, of which the 44 of the prompt before", []int{60, 44, first.Bytes}, []int{again.Tokens, again.CachedTokens, again.CachedBytes})
	cut, _ := m.measurePrompt(llm.Request{System: []string{"be rude"}, Messages: talk("one two", "three"), Tools: []llm.ToolSpec{{Name: "f"}}})
	compare.True(t, cut.CachedTokens < 32 && cut.CachedTokens > 20, "got %+v, want the tool and half of the system block", cut)
}

// What is cached is a prefix: never more than the prompt, and all of the prompt
// before if that is its beginning.
func TestMeasureLaws(t *testing.T) {
	t.Parallel()
	seed.Check(t, func(t *rapid.T) {
		m := newMeter(words{}, rapid.Float64Range(0.5, 2).Draw(t, "factor"))
		text := rapid.StringMatching(`[ab ]{0,12}`)
		list := rapid.SliceOfN(text, 1, 8).Draw(t, "before")
		before, _ := m.measurePrompt(llm.Request{Messages: talk(list...)})
		longer, _ := m.measurePrompt(llm.Request{Messages: talk(append(list, text.Draw(t, "more"))...)})
		if longer.CachedBytes != before.Bytes || longer.CachedTokens > longer.Tokens || longer.CachedTokens > before.Tokens {
			t.Fatalf("got %+v after %+v, want all of the prompt before", longer, before)
		}
		other, _ := m.measurePrompt(llm.Request{Messages: talk(rapid.SliceOfN(text, 1, 8).Draw(t, "other")...)})
		must.True(t, other.CachedBytes <= min(other.Bytes, longer.Bytes) && other.CachedTokens <= other.Tokens, "got %+v after %+v, want a prefix", other, longer)
	})
}

// All ids count the same, and nothing else changes.
func TestSteady(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "no id": "no id", "-": "-", "a-b-c-d-e-f": "a-b-c-d-e-f",
		"0193a7b2-1111-7abc-8def-0123456789ab":                                         sameID,
		"x 0193a7b2-1111-7abc-8def-0123456789ab, 0193a7b2-2222-7abc-8def-0123456789ab": "x " + sameID + ", " + sameID,
		"0193a7b2-1111-7abc-8def-0123456789abX":                                        sameID + "X",
		"0193a7b2-1111-4abc-8def-0123456789ab":                                         "0193a7b2-1111-4abc-8def-0123456789ab",
		"0193a7b2-1111-7abc-8def-0123456789a":                                          "0193a7b2-1111-7abc-8def-0123456789a",
		"0193A7B2-1111-7abc-8def-0123456789ab":                                         "0193A7B2-1111-7abc-8def-0123456789ab",
		"café-0193a7b2-1111-7abc-8def-0123456789ab":                                    "café-" + sameID,
	} {
		compare.Equal(t, fmt.Sprintf("%q", text), want, withSameIDs(text))
	}
	id := string(core.NewID[core.MessageID]())
	calls := []core.ToolCall{{Arguments: id}}
	m := core.Message{Content: id, ToolCalls: calls}
	compare.Equal(t, "want the ids of a message to count alike, and the message as it was", []any{2 * len(sameID), id}, []any{Steady(letters{}).Message(m), calls[0].Arguments})
}

// letters counts what is not the same id as longer.
type letters struct{ words }

func (letters) Message(m core.Message) int {
	n := 0
	for _, s := range []string{m.Content, m.ToolCalls[0].Arguments} {
		n += len(s)
		if s != sameID {
			n += 1000
		}
	}
	return n
}

func TestPlayer(t *testing.T) {
	t.Parallel()
	p := NewPlayer(llm.Info{Name: "m", Provider: "replay", Window: 1000, PriorFactor: 1}, words{})
	calls := []core.ToolCall{{ID: "a", Name: "f", Arguments: `{"x": 1}`}, {ID: "b", Name: "g", Arguments: "{}"}}
	p.countHeard(core.Message{Role: core.RoleUser, Content: "one two"})
	p.loadAnswers([]Step{
		{Answer: core.Message{Content: "I look", ToolCalls: calls, Parts: []core.Part{{Type: "reasoning", Text: "hm"}}}, Results: []core.Message{{Content: "r1"}, {Content: "r2"}}},
		{Answer: core.Message{Content: "done"}},
	})
	first, err := llm.Collect(p.Stream(t.Context(), llm.Request{System: []string{"s"}, Messages: talk("one two")}), nil)
	want := llm.Response{Text: "I look", Reasoning: "hm", ToolCalls: calls, Finish: core.FinishToolCalls, Usage: &core.Usage{InputTokens: 14, OutputTokens: 9}}
	diff := cmp.Diff(want, first)
	compare.True(t, diff == "" && err == nil, "%v; answer (-want +got):\n%s", err, diff)
	second, err := llm.Collect(p.Stream(t.Context(), llm.Request{System: []string{"s"}, Messages: talk("all of it")}), nil)
	compare.True(t, err == nil && second.Text == "done" && second.Finish == core.FinishStop, "got %+v, %v, want the second answer", second, err)
	prompts, left := p.takePrompts()
	// 8 of list and system, 6 of the question; then 9 of the answer and 10 of the results.
	compare.Equal(t, "left: want 14 and 33 as everything", []int{0, 2, 14, 33}, []int{left, len(prompts), prompts[0].Everything, prompts[1].Everything})
	if _, err = llm.Collect(p.Stream(t.Context(), llm.Request{}), nil); llm.AsError(err) == nil || llm.AsError(err).Kind != llm.KindInvalid {
		t.Errorf("got %v after the last answer, want that there is no other", err)
	}
	last := p.lastRequest()
	compare.True(t, len(last.Messages) == 1 && last.Messages[0].Content == "all of it", "got %+v, want the last request that was answered", last)
}
