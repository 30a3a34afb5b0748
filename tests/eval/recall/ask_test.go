package recall_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"bobbin/app/core/config"
	"bobbin/app/eval"
	"bobbin/tests/eval/recall"
)

// recallTalk is two conversations with questions.
func recallTalk(t *testing.T) string {
	t.Helper()
	type message struct {
		ID      string `json:"id"`
		Speaker string `json:"speaker"`
		Text    string `json:"text"`
	}
	type question struct {
		Question string   `json:"question"`
		Answer   string   `json:"answer"`
		Evidence []string `json:"evidence"`
	}
	type talk struct {
		ID        string     `json:"id"`
		Speakers  []string   `json:"speakers"`
		Messages  []message  `json:"messages"`
		Questions []question `json:"questions"`
	}
	var talks []talk
	for n, harbor := range []string{"Turku", "Riga"} {
		c := talk{ID: fmt.Sprint("talk", n+1), Speakers: []string{"Ann", "Ben"}, Messages: []message{{"0", "Ann", "I keep my old green canoe in " + harbor + " this winter"}}}
		for i := range 30 {
			c.Messages = append(c.Messages, message{fmt.Sprint("b", i), "Ben", fmt.Sprintf("Chapter %d was about sail number %d.", i, i*7)},
				message{fmt.Sprint("a", i), "Ann", fmt.Sprintf("And what does chapter %d tell of knots, ropes and the weather at sea?", i+1)})
		}
		c.Messages = append(c.Messages, message{"last", "Ben", "It tells of the bowline and of fog."})
		c.Questions = []question{
			{"canoe winter", harbor, []string{"0"}}, {"Where does she store her boat?", harbor, []string{"0"}},
			{"Which knot came at the end?", "the bowline", []string{"last", "a29"}}, {"Who paid?", "nobody", nil},
		}
		talks = append(talks, c)
	}
	raw, err := json.Marshal(talks)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// Questions are asked in each window under each policy; a row says where their evidence is.
func TestEvaluate(t *testing.T) {
	t.Parallel()
	report, err := recall.Evaluate(t.Context(), config.Default(), slog.New(slog.DiscardHandler), recall.Evaluation{
		Evaluation: eval.Evaluation{Data: []byte(recallTalk(t)), Policies: []string{"off", "window"}}, Windows: []int{1500, 4000},
	})
	if err != nil {
		t.Fatal(err)
	}
	if report.Conversations != 2 || report.Messages != 124 || report.Questions != 6 || len(report.Notices) != 2 || len(report.Rows) != 4 {
		t.Errorf("got %+v, want six questions in four rows", report)
	}
	small, large := report.Rows[0], report.Rows[3]
	if small.Policy != "off" || small.Window != 1500 || small.Questions != 6 || small.InPrompt != 2 || small.First1 != 2 || small.Quoted != 4 {
		t.Errorf("got %+v, want the last message in the small prompt, and the first found and quoted", small)
	}
	if large.Policy != "window" || large.Window != 4000 || large.Held() != 6 || large.NotAtAll != 0 {
		t.Errorf("got %+v, want all evidence in the prompt", large)
	}
}
