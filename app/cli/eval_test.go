package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bobbin/app/eval"
	"bobbin/tests/compare"
	"bobbin/tests/must"
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
	file := filepath.Join(dir, "talk.jsonl")
	must.Do(t, os.WriteFile(file, []byte(foreignTalk), 0o600))
	code, out, errs := run(t, "", "eval", "context", file, "--policy", "window,off")
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

}

// Facts from a file, a model's window and counting, the window that is asked for, and
// no model for the summaries.
func TestEvalContextSettings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	facts, agent := filepath.Join(dir, "facts.txt"), filepath.Join(dir, "mine.yaml")
	must.Do(t, os.WriteFile(facts, []byte(`["four.", {"text":"my name is ada lovelace.","ask":"Which name is mine?"}]`), 0o600))
	must.Do(t, os.WriteFile(agent, []byte("name: mine\nsystem_prompt: Be kind.\ntools: [calculator]\ncontext:\n  policy: budget\n  max_messages_before_summary: 12\n  min_recent_messages: 2\n"), 0o600))
	long := foreignTalk + strings.Repeat(`{"role":"user","content":"Again, please, and at some length so that there is something to keep."}`+"\n"+`{"role":"assistant","content":"As you like: once more at some length, with words that need room."}`+"\n", 20)
	report := evaluated(t, long, "-", "--facts", facts, "--model", "claude-sonnet-4-5", "--window", "20000", "--summarizer", "extractive", "--agent", agent)
	p := report.Policies[0]
	if report.FactsFrom != eval.FactsGiven || p.Facts.Planted != 2 || p.Facts.Asked != 1 || p.Facts.SearchAlone != (eval.Ranked{}) || report.Model != "claude-sonnet-4-5" || p.Budget.Window != 20_000 {
		t.Errorf("got %+v, want two facts given, no search for them, and a window of 20,000", report)
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
	must.Do(t, os.WriteFile(agent, []byte("name: bad\ntools: [hammer]\n"), 0o600))
	talk := `{"role":"user","content":"hello"}` + "\n"
	many := "0"
	for n := range 500 {
		many += fmt.Sprint(" ", n+1)
	}
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
		{"question that says the fact", `{"role":"user","content":"hello","metadata":{"facts":[{"text":"hello","ask":"Who said hello?"}]}}`, "has a question that says the fact itself", []string{"-"}},
		{"planted number", `{"role":"user","content":"hello","metadata":{"facts":7}}`, "message 1: metadata.facts: json", []string{"-"}},
		{"planted nothing", `{"role":"user","content":"hello","metadata":{"facts":[""]}}`, "message 1: metadata.facts[0] is empty", []string{"-"}},
		{"planted in the prompt", `{"role":"system","content":"secret","metadata":{"facts":["secret"]}}` + "\n" + talk, "message 1 does not say its metadata.facts[0]", []string{"-"}},
		{"too many facts", `{"role":"user","content":"` + many + `","metadata":{"facts":["` + strings.ReplaceAll(many, " ", `","`) + `"]}}`, "at most 500 can be looked for", []string{"-"}},
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
	if code != 0 || errs != "" || strings.Count(out, "\n") != 1+len(eval.List()) {
		t.Errorf("got %d, %q, %q, want a line for each sample", code, out, errs)
	}
	code, out, _ = run(t, "", "eval", "context", "--list-samples", "--json")
	if code != 0 || !strings.Contains(out, `"name": "incident"`) {
		t.Errorf("got %d, %q, want the samples as JSON", code, out)
	}
	report := evaluated(t, "", "--sample", "incident", "--policy", "off")
	compare.Equal(t, "window, source: want the sample's own", []any{32_768, "incident"}, []any{report.Window, report.Source})
}
