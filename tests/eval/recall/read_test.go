package recall_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/tests/eval/recall"
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
func TestReadRecalls(t *testing.T) {
	t.Parallel()
	got, err := recall.Read([]byte(twoTalks))
	want := []recall.Talk{
		{
			ID: "t1", Skipped: 1,
			Data: []byte(`{"role":"assistant","content":"Hello Ann","author":"Ben"}` + "\n" + `{"role":"user","content":"I bought a canoe in Turku","author":"Ann","created_at":"2023-05-08T13:56:00Z"}` + "\n"),
			Questions: []recall.Question{
				{Answer: "Turku", Ask: "Where is the boat from?", Evidence: []recall.Evidence{
					{Text: "I bought a canoe in Turku", Telling: []string{"a", "bought", "canoe", "i", "in", "turku"}, Answer: []string{"turku"}},
				}},
				{Answer: "2022", Ask: "When?", Evidence: []recall.Evidence{{Text: "Hello Ann", Telling: []string{"ann", "hello"}}}},
			},
		},
		{ID: "t2", Data: []byte(`{"role":"user","content":"Hi","author":"Cid"}` + "\n" + `{"role":"assistant","content":"Ho","author":"Dan","created_at":"2026-01-31T12:00:00+02:00"}` + "\n")},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v; conversations (-want +got):\n%s", err, diff)
	}
}

// A word that many messages have tells nothing of one of them.
func TestTellingWords(t *testing.T) {
	t.Parallel()
	var messages []string
	for i := range 100 {
		messages = append(messages, fmt.Sprintf(`{"id":"%d","speaker":"A","text":"the boat %d"}`, i, i%20))
	}
	got, err := recall.Read([]byte(`[{"id":"x","messages":[` + strings.Join(messages, ",") + `],"questions":[{"question":"?","answer":"the boat","evidence":["7"]}]}]`))
	if err != nil || len(got) != 1 {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]recall.Evidence{{Text: "the boat 7", Telling: []string{"7"}}}, got[0].Questions[0].Evidence); diff != "" {
		t.Errorf("evidence (-want +got):\n%s", diff)
	}
}
