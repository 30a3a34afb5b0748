package eval_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/eval"
)

// twoTalks are two conversations with questions.
const twoTalks = `[
 {"id": "t1", "speakers": ["Ann", "Ben"], "messages": [
  {"id": "1", "speaker": "Ben", "at": "noon", "text": "Hello Ann"},
  {"id": "2", "speaker": "Ann", "at": "1:56 pm on 8 May, 2023", "text": "I bought a canoe in Turku"},
  {"id": "3", "speaker": "Ann", "text": " "}],
  "questions": [
   {"question": "Where is the boat from?", "answer": "Turku", "category": 4, "evidence": ["2"]},
   {"question": "When?", "answer": 2022, "evidence": ["9", "1"]},
   {"question": "Why?", "answer": "x", "evidence": ["9"]}]},
 {"id": "t2", "messages": [{"id": "1", "speaker": "Cid", "at": 7, "text": "Hi"}, {"id": "2", "speaker": "Dan", "at": "2026-01-31T12:00:00+02:00", "text": "Ho"}], "questions": []}
]`

// A file of conversations with questions is read by its shape.
// Finding: context-F2
func TestReadRecalls(t *testing.T) {
	t.Parallel()
	got, err := eval.ReadRecalls([]byte("\uFEFF " + twoTalks))
	want := []eval.Recall{
		{
			ID: "t1", Skipped: 1,
			Data: []byte(`{"role":"assistant","content":"Hello Ann","author":"Ben"}` + "\n" + `{"role":"user","content":"I bought a canoe in Turku","author":"Ann","created_at":"2023-05-08T13:56:00Z"}` + "\n"),
			Facts: []eval.Fact{
				{Kind: "fact", Text: "Turku", Ask: "Where is the boat from?", Evidence: []eval.Evidence{
					{Text: "I bought a canoe in Turku", Telling: []string{"a", "bought", "canoe", "i", "in", "turku"}, Answer: []string{"turku"}},
				}},
				{Kind: "fact", Text: "2022", Ask: "When?", Evidence: []eval.Evidence{{Text: "Hello Ann", Telling: []string{"ann", "hello"}}}},
			},
		},
		{ID: "t2", Data: []byte(`{"role":"user","content":"Hi","author":"Cid"}` + "\n" + `{"role":"assistant","content":"Ho","author":"Dan","created_at":"2026-01-31T12:00:00+02:00"}` + "\n")},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v; conversations (-want +got):\n%s", err, diff)
	}
	one := strings.TrimSuffix(strings.TrimPrefix(twoTalks, "["), "]")
	if alone, err := eval.ReadRecalls([]byte(one[strings.LastIndex(one, ` {"id": "t2"`):])); err != nil || len(alone) != 1 || alone[0].ID != "t2" {
		t.Errorf("got %+v, %v, want one conversation", alone, err)
	}
	for _, other := range []string{"", "{", `[]`, `[{"role":"user","content":"x"}]`, `{"messages":[]}`, `{"role":"user"}` + "\n" + `{"role":"user"}`} {
		if got, err := eval.ReadRecalls([]byte(other)); got != nil || err != nil {
			t.Errorf("%q: got %+v, %v, want that it is something else", other, got, err)
		}
	}
}

// A word that many messages have tells nothing of one of them.
func TestTellingWords(t *testing.T) {
	t.Parallel()
	var messages []string
	for i := range 100 {
		messages = append(messages, fmt.Sprintf(`{"id":"%d","speaker":"A","text":"the boat %d"}`, i, i%20))
	}
	got, err := eval.ReadRecalls([]byte(`{"id":"x","messages":[` + strings.Join(messages, ",") + `],"questions":[{"question":"?","answer":"the boat","evidence":["7"]}]}`))
	if err != nil || len(got) != 1 {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]eval.Evidence{{Text: "the boat 7", Telling: []string{"7"}}}, got[0].Facts[0].Evidence); diff != "" {
		t.Errorf("evidence (-want +got):\n%s", diff)
	}
}

func TestRecallFaults(t *testing.T) {
	t.Parallel()
	for document, want := range map[string]string{
		`[{"id":"x","messages":[{"id":1}],"questions":[]}]`:                                      "conversations with questions: json",
		`{"id":"x","messages":[{"id":"1","text":"a"},{"id":"1","text":"b"}],"questions":[]}`:     `conversation 1 (x): two messages have the id "1"`,
		`{"id":"x","messages":[],"questions":[{"question":" "}]}`:                                "question 1 is empty or has more than 500 bytes",
		`{"id":"x","messages":[],"questions":[{"question":"` + strings.Repeat("w", 501) + `"}]}`: "question 1 is empty",
	} {
		if _, err := eval.ReadRecalls([]byte(document)); !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", document, err, want)
		}
	}
}

// Several reports are one: sums, and turns that go on.
func TestJoin(t *testing.T) {
	t.Parallel()
	first, second := report(), report()
	second.Policies[0].Largest, second.Policies[0].LargestTurn = 1400, 2
	got := eval.Join("both.json", []eval.Joined{{ID: "a", Report: first}, {ID: "b", Report: second}})
	if got.Source != "both.json" || got.Messages != 40 || got.Turns != 6 || got.Tokens != 24_690 {
		t.Errorf("got %+v, want the sum of both", got)
	}
	if diff := cmp.Diff([]string{"2 conversations, replayed one after the other: a, b", "a: 1 of something", "b: 1 of something"}, got.Notices); diff != "" {
		t.Errorf("notices (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(eval.Everything{Prompts: 6, Largest: 1800, Tokens: 7200, CachedTokens: 3600, CacheShare: 0.5, TooLargeFrom: 3}, got.Everything); diff != "" {
		t.Errorf("everything (-want +got):\n%s", diff)
	}
	p := got.Policies[0]
	if p.Prompts != 6 || p.Largest != 1400 || p.LargestTurn != 5 || p.Tokens != 5600 || p.CacheShare != 0.5 || p.Summaries != 2 || p.Summarizer.Calls != 2 || p.Coverage.Summarized != 24 {
		t.Errorf("got %+v, want the sum of both", p)
	}
	lost := first.Policies[0].Facts.Unreachable[0]
	if diff := cmp.Diff(eval.Found{Planted: 6, Asked: 4, Reachable: 4, Prompt: 2, Summary: 2, Unreachable: []eval.Fact{lost, lost}, SearchAlone: eval.Ranked{First5: 2, First20: 2}}, p.Facts); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
	for i, turn := range p.Turns {
		if turn.Turn != i+1 || turn.Conversation != map[bool]string{true: "a", false: "b"}[i < 3] {
			t.Errorf("got turn %d of %s, want turn %d", turn.Turn, turn.Conversation, i+1)
		}
	}
	if failed := got.Policies[1].Failed; failed == nil || failed.Turn != 3 {
		t.Errorf("got %+v, want the first failure", failed)
	}
	if diff := cmp.Diff(first.Policies[0].Turns, report().Policies[0].Turns); diff != "" {
		t.Errorf("the parts (-want +got):\n%s", diff)
	}
	if alone := eval.Join("one.json", []eval.Joined{{ID: "a", Report: first}}); alone.Source != "one.json" || len(alone.Notices) != 1 || alone.Turns != 3 {
		t.Errorf("got %+v, want the one report", alone)
	}
}
