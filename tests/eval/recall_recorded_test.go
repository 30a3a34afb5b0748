package eval_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"bobbin/app/eval"
	"bobbin/tests/dbtest"
	"bobbin/tests/eval/recall"
	"bobbin/tests/must"
)

// Who said what, and when, counts in the search as after an import of the conversation, for
// questions and answers: of two messages with the same words about the canoe, the one by the person or
// of the day that the question names comes first.
func TestRecallCountsAuthorsAndTimes(t *testing.T) {
	t.Parallel()
	type message struct {
		ID      string `json:"id"`
		Speaker string `json:"speaker"`
		At      string `json:"at"`
		Text    string `json:"text"`
	}
	type question struct {
		Question string   `json:"question"`
		Evidence []string `json:"evidence"`
	}
	var messages []message
	say := func(speaker string, day int, text string) {
		messages = append(messages, message{fmt.Sprint(len(messages) + 1), speaker, fmt.Sprintf("1:56 pm on %d May, 2023", day), text})
	}
	for turn := range 20 {
		ann, ben := "Good morning to you.", "Yes, a good morning."
		switch turn {
		case 5:
			ann = "The canoe is dry now."
		case 14:
			ben = "The canoe is wet now."
		}
		say("Ann", 1+turn, ann)
		say("Ben", 1+turn, ben)
	}
	data, err := json.Marshal([]any{map[string]any{"id": "c", "speakers": []string{"Ann", "Ben"}, "messages": messages, "questions": []question{
		{"What did Ann say about the canoe?", []string{"11"}},
		{"What did Ben say about the canoe?", []string{"30"}},
		{"What about the canoe on 6 May, 2023?", []string{"11"}},
		{"What about the canoe on 15 May, 2023?", []string{"30"}},
	}}})
	must.Do(t, err)
	report := askRecall(t, recall.Evaluation{Windows: []int{8_192}, Recalls: []string{"tool"}, Evaluation: eval.Evaluation{
		Source: "canoe", Data: data, Policies: []string{"off"}, Database: func() (string, error) { return dbtest.MigratedSQLiteURL(t), nil },
	}})
	if len(report.Rows) != 1 || report.Failed() || report.Rows[0].Questions != 4 || report.Rows[0].First1 != 4 {
		t.Errorf("got %+v, want the evidence of all 4 questions first", report.Rows)
	}
}
