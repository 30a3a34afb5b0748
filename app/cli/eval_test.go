package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/eval"
)

// foreignTalk is a conversation in the shapes of three systems, with facts in it.
const foreignTalk = `{"role":"system","content":"You are terse."}
{"role":"user","content":"My name is Ada Lovelace.","metadata":{"facts":["name: Ada Lovelace"]}}
{"type":"ai","data":{"content":"","tool_calls":[{"id":"c1","name":"sum","args":{"of":"1+1"}}]}}
{"role":"tool","tool_call_id":"c1","content":"2"}
{"lc":1,"type":"constructor","id":["AIMessage"],"kwargs":{"content":"Hello Ada."}}
{"role":"user","content":[{"type":"text","text":"And now?"}]}
{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"sum","arguments":"{\"of\": \"2+2\"}"}}]}
{"role":"tool","tool_call_id":"c1","content":"4"}
{"role":"assistant","content":"Four."}
`

// evaluated runs the command and returns the report of --json.
func evaluated(t *testing.T, input string, args ...string) eval.Report {
	t.Helper()
	code, out, errs := run(t, input, append([]string{"eval", "context", "--json"}, args...)...)
	var report eval.Report
	if err := json.Unmarshal([]byte(out), &report); code != 0 || err != nil || errs != "" {
		t.Fatalf("%q: got %d, %v, %q; want a report", args, code, err, errs)
	}
	return report
}

func TestEvalContext(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, svg := filepath.Join(dir, "talk.jsonl"), filepath.Join(dir, "talk.svg")
	if err := os.WriteFile(file, []byte(foreignTalk), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := run(t, "", "eval", "context", file, "--policy", "window,off", "--svg", svg)
	if code != 0 || errs != "" || !strings.HasPrefix(out, "talk.jsonl: 8 messages in 2 turns") || strings.Count(out, "1 of 1") != 2 {
		t.Errorf("got %d, %q, %q, want a table of two policies", code, out, errs)
	}
	report := evaluated(t, foreignTalk, "-", "--policy", "window,off")
	if report.Source != "standard input" || report.Model != eval.EvaluationModel || report.Window != 128_000 || report.FactsFrom != eval.FactsOfFile {
		t.Errorf("got %+v, want the model that is taken by default", report)
	}
	if len(report.Policies) != 2 || report.Policies[1].Policy != "off" || report.Policies[0].Prompts != 4 || report.Policies[0].Facts.Prompt != 1 {
		t.Errorf("got %+v, want four prompts under each policy", report.Policies)
	}
	// What the command draws is what the report says.
	report.Source = "talk.jsonl"
	if drawn, err := os.ReadFile(svg); err != nil || string(drawn) != string(report.SVG()) {
		t.Errorf("got a picture of %d bytes, %v, want the report's", len(drawn), err)
	}
}

// Facts from a file, a model's window and counting, the window that is asked for, and
// no model for the summaries.
func TestEvalContextSettings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	facts, agent := filepath.Join(dir, "facts.txt"), filepath.Join(dir, "mine.yaml")
	if err := os.WriteFile(facts, []byte("# of the talk\nname: ada lovelace\nfact: four.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(agent, []byte("name: mine\nsystem_prompt: Be kind.\ntools: [calculator]\ncontext:\n  policy: budget\n  max_messages_before_summary: 12\n  min_recent_messages: 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	long := foreignTalk + strings.Repeat(`{"role":"user","content":"Again, please, and at some length so that there is something to keep."}`+"\n"+`{"role":"assistant","content":"As you like: once more at some length, with words that need room."}`+"\n", 20)
	report := evaluated(t, long, "-", "--facts", facts, "--model", "claude-sonnet-4-5", "--window", "20000", "--summarizer", "extractive", "--agent", agent)
	p := report.Policies[0]
	if report.FactsFrom != eval.FactsGiven || p.Facts.Planted != 2 || report.Model != "claude-sonnet-4-5" || p.Budget.Window != 20_000 {
		t.Errorf("got %+v, want two facts given and a window of 20,000", report)
	}
	if p.Policy != "budget" || p.Summaries == 0 || p.Summarizer != (eval.Summarizer{Name: "extractive"}) {
		t.Errorf("got %s with %d summaries by %+v, want the agent's policy and no model called", p.Policy, p.Summaries, p.Summarizer)
	}
	if len(report.Notices) != 1 || !strings.Contains(report.Notices[0], "search_history") {
		t.Errorf("got notices %q, want that the agent cannot search", report.Notices)
	}
	plain := evaluated(t, long, "-", "--agent", agent, "--policy", "budget,sliding")
	if own, preset := plain.Policies[0], plain.Policies[1]; own.Summaries == 0 || preset.Policy != "sliding" {
		t.Errorf("got %d summaries, then %s; want the agent's own settings, and a preset as it is", own.Summaries, preset.Policy)
	}
}

func TestEvalContextFaults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	agent := filepath.Join(dir, "bad.yaml")
	if err := os.WriteFile(agent, []byte("name: bad\ntools: [hammer]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	talk := `{"role":"user","content":"hello"}` + "\n"
	tests := []struct {
		name, input, want string
		args              []string
	}{
		{"no file", "", "no conversation given", nil},
		{"both", "", "give either a file or --sample, not both", []string{"x.jsonl", "--sample", "chat"}},
		{"missing file", "", "no such file", []string{filepath.Join(dir, "none.jsonl")}},
		{"no sample", "", "there are chat, coding, cjk, incident", []string{"--sample", "novel"}},
		{"bad lines", talk + "\n{\n" + `{"role":"tool","content":"x"}`, "line 3 is not a JSON object; line 4 tool_call_id", []string{"-"}},
		{"bad list", `[{"role":"tool","content":"x"}]`, "message 1 tool_call_id is missing", []string{"-"}},
		{"nobody asks", `{"role":"assistant","content":"hello"}`, "no message of a user", []string{"-"}},
		{"empty", "", "no message of a user", []string{"-"}},
		{"policy", talk, `"greedy" does not exist; use one of window, budget`, []string{"-", "--policy", "greedy"}},
		{"policy twice", talk, "--policy: off is there twice", []string{"-", "--policy", "off,off"}},
		{"model", talk, `--model: "hal-9000" is not known`, []string{"-", "--model", "hal-9000"}},
		{"window", talk, "--window: 100 is too small", []string{"-", "--window", "100"}},
		{"summarizer", talk, `--summarizer: model "hal-9000" is not known`, []string{"-", "--summarizer", "hal-9000"}},
		{"agent", talk, "bad.yaml:2:9: tool \"hammer\" does not exist", []string{"-", "--agent", agent}},
		{"facts", talk, "--facts: open", []string{"-", "--facts", filepath.Join(dir, "none")}},
		{"fact that nobody says", talk, "no message of the conversation says the fact", []string{"-", "--facts", agent}},
		{"svg", talk, "--svg: open", []string{"-", "--svg", filepath.Join(dir, "none", "x.svg")}},
		{"question that says the fact", `{"role":"user","content":"hello","metadata":{"facts":[{"text":"hello","ask":"Who said hello?"}]}}`, "has a question that says the fact itself", []string{"-"}},
		{"questions and facts", recallTalk(t), "--facts: the file has questions of its own", []string{"-", "--facts", agent}},
		{"conversation with questions", `[{"id":"x","messages":[{"id":"1","text":"a"},{"id":"1","text":"b"}],"questions":[]}]`, `conversation 1 (x): two messages have the id "1"`, []string{"-"}},
		{"conversation without a user", `[{"id":"x","speakers":["Ann"],"messages":[{"id":"1","speaker":"Ben","text":"b"}],"questions":[]}]`, `conversation 1 (x): the conversation has no message of a user`, []string{"-"}},
		{"planted", `{"role":"user","content":"hello","metadata":{"facts":["bye"]}}`, `message 1 does not say its metadata.facts[0]: "bye"`, []string{"-"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			code, out, errs := run(t, tt.input, append([]string{"eval", "context"}, tt.args...)...)
			if code != 1 || !strings.Contains(errs, tt.want) {
				t.Errorf("got %d, %q, %q, want 1 and %q", code, out, errs, tt.want)
			}
		})
	}
	code, _, errs := run(t, "{\n", "eval", "context", "-", "--json")
	if code != 1 || !strings.Contains(errs, `"field": "line 1"`) || !strings.Contains(errs, `"code": "invalid"`) {
		t.Errorf("got %d, %s, want a problem that names the line", code, errs)
	}
}

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

// A file of conversations with questions is replayed, and each question is asked.
// Finding: context-F2
func TestEvalContextRecall(t *testing.T) {
	t.Parallel()
	report := evaluated(t, recallTalk(t), "-", "--policy", "off", "--window", "1500")
	if report.FactsFrom != eval.FactsAsked || report.Messages != 124 || report.Turns != 62 || len(report.Notices) != 3 {
		t.Errorf("got facts from %s, %d messages in %d turns, notices %q; want both conversations", report.FactsFrom, report.Messages, report.Turns, report.Notices)
	}
	got := report.Policies[0].Facts
	lost := got.Unreachable
	got.Unreachable = nil
	if diff := cmp.Diff(eval.Found{Planted: 6, Asked: 6, Reachable: 4, Prompt: 2, First5: 2, SearchAlone: eval.Ranked{First5: 2, First20: 2}}, got); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
	if len(lost) != 2 || lost[0].Ask != "Where does she store her boat?" || lost[0].Text != "Turku" || lost[1].Text != "Riga" {
		t.Errorf("got %+v out of reach, want the question in other words of each conversation", lost)
	}
	code, out, errs := run(t, recallTalk(t), "eval", "context", "-", "--policy", "off")
	if code != 0 || errs != "" || !strings.Contains(out, "  evidence reachable        6 of 6") || !strings.Contains(out, "note: talk2: one question names no message that answers it") {
		t.Errorf("got %d, %q, %q, want the evidence of both conversations", code, out, errs)
	}
}

// A conversation that cannot go on is in the report, and in the exit code.
func TestEvalContextFails(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("A rule of the house that must be kept. ", 400)
	talk := `{"role":"system","content":"` + long + `"}` + "\n" + `{"role":"user","content":"hello"}` + "\n" + `{"role":"assistant","content":"hi"}`
	code, out, errs := run(t, talk, "eval", "context", "-", "--window", "2000")
	if code != 1 || !strings.Contains(out, "window: the conversation ends in turn 1: ") || !strings.Contains(out, "(context_floor)") || errs != "" {
		t.Errorf("got %d, %q, %q, want the table and exit code 1", code, out, errs)
	}
}

func TestEvalSamples(t *testing.T) {
	t.Parallel()
	code, out, errs := run(t, "", "eval", "context", "--list-samples")
	if code != 0 || errs != "" || strings.Count(out, "\n") != 1+len(eval.EvaluationSamples()) {
		t.Errorf("got %d, %q, %q, want a line for each sample", code, out, errs)
	}
	code, out, _ = run(t, "", "eval", "context", "--list-samples", "--json")
	if code != 0 || !strings.Contains(out, `"name": "incident"`) {
		t.Errorf("got %d, %q, want the samples as JSON", code, out)
	}
	if report := evaluated(t, "", "--sample", "incident", "--policy", "off"); report.Window != 32_768 || report.Source != "incident" {
		t.Errorf("got %s with a window of %d, want the sample's own", report.Source, report.Window)
	}
}

// Questions are asked in each window under each policy; the chart and the table are the
// report's (P16-6).
func TestEvalRecall(t *testing.T) {
	t.Parallel()
	svg := filepath.Join(t.TempDir(), "recall.svg")
	code, out, errs := run(t, recallTalk(t), "eval", "recall", "-", "--policy", "off,window", "--window", "1500,4000", "--json", "--svg", svg)
	var report eval.RecallReport
	if err := json.Unmarshal([]byte(out), &report); code != 0 || err != nil || errs != "" {
		t.Fatalf("got %d, %v, %q, want a report", code, err, errs)
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
	if drawn, err := os.ReadFile(svg); err != nil || string(drawn) != string(report.SVG()) {
		t.Errorf("got a picture of %d bytes, %v, want the report's", len(drawn), err)
	}
	if code, out, errs := run(t, "", "eval", "recall", "--sample", "--policy", "off", "--window", "8000"); code != 0 || errs != "" || !strings.HasPrefix(out, "sample: 36 questions about 296 messages in 2 conversations") {
		t.Errorf("got %d, %q, %q, want the sample's table", code, out, errs)
	}
	for want, args := range map[string][]string{
		"give either a file or --sample": {"-", "--sample"}, "no questions given": nil, "--window: 100 is too small": {"-", "--window", "100"},
		`"greedy" does not exist`: {"-", "--policy", "greedy"},
	} {
		if code, out, errs := run(t, recallTalk(t), append([]string{"eval", "recall"}, args...)...); code != 1 || !strings.Contains(errs, want) {
			t.Errorf("%q: got %d, %q, %q, want 1 and %q", args, code, out, errs, want)
		}
	}
}
