package garbage_test

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/summarize"
	"bobbin/app/core/tokens"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

// policy is how a preset asks for summaries.
type policy struct {
	name          string
	hybrid        bool
	limit, askFor int
}

func policies() []policy {
	return []policy{
		{summarize.PresetWindow, true, 1_200, 0}, {summarize.PresetBudget, false, 1_000, 670}, {summarize.PresetSliding, false, 500, 300},
	}
}

// gate asks for summaries of fixtures.
type gate struct {
	t     *testing.T
	count *tokens.Counter
	all   bool // bad answers are given, not one of each kind
}

// ask has the fixture summarized under the policy by a model that gives the answer to every
// request, and returns the result. Previous is the summary that is extended.
func (g gate) ask(f fixture, p policy, a answer, previous string) summarize.Result {
	g.t.Helper()
	model := llmtest.Scripted(a.step()).WithInfo(llm.Info{Name: "m", Provider: "p", Window: 128_000, MaxOutput: 8_000})
	var strategy summarize.Strategy = summarize.NewLLM(model, g.count, nil)
	if p.hybrid {
		strategy = summarize.NewHybrid(summarize.NewLLM(model, g.count, nil))
	}
	res, err := summarize.New(strategy, g.count).Summarize(g.t.Context(), summarize.Request{
		Preset: p.name, Messages: f.messages, Previous: previous, Limit: p.limit, TargetTokens: p.askFor,
	})
	if err != nil {
		g.t.Fatalf("%s, %s: %v", f.name, a.kind, err)
	}
	return res
}

// figure counts answers, and the wrong ones of them: bad ones that are stored, good ones that are refused.
type figure struct {
	asked, wrong int
	cause        string // of the last one that was refused
}

// share is the part of the answers that is wrong, in percent.
func (f figure) share() float64 { return 100 * float64(f.wrong) / float64(max(f.asked, 1)) }

// add counts the result of an answer, also under its name.
func (f *figure) add(res summarize.Result, isBad bool, name string, named map[string]figure) {
	name = strings.TrimSpace(name)
	sum := named[name]
	if f.asked, sum.asked = f.asked+1, sum.asked+1; isBad == (res.Note == "") {
		f.wrong, sum.wrong, sum.cause = f.wrong+1, sum.wrong+1, res.Cause
	}
	named[name] = sum
}

// Nearly no bad answer becomes the memory of a conversation, and nearly no good one is
// refused: as the first summary and as an extension of one. With BOBBIN_TEST_LONG=1 all
// answers are given under all policies, and those that nobody chose a rule by, else a bad
// one of each kind and all good ones under one policy.
func TestShowGarbage(t *testing.T) {
	g := gate{t, tokens.NewCounter(), os.Getenv("BOBBIN_TEST_LONG") != ""}
	if !g.all {
		g.measure(load(t, "*"), 3.5) // one is 0.9 % of the sample
		return
	}
	g.measure(load(t, "*"), 2.1)
	unseen := load(t, "unseen/*")
	for i, f := range unseen {
		unseen[i].name, unseen[i].bad = "", append(f.bad, copiesOf(f)...) // counted by kind alone
	}
	for kind, f := range g.measure(unseen, 100) {
		if f.wrong > unseenWrong[kind] {
			t.Errorf("%s: %d of %d answers in testdata/unseen go wrong, want at most %d", kind, f.wrong, f.asked, unseenWrong[kind])
		}
	}
}

// unseenWrong is how many answers of a kind in testdata/unseen go wrong, of others none. That is what
// holds, not what is good: nobody chooses a rule or a number by them.
var unseenWrong = map[string]int{
	"bad the user's messages": 36, "bad extension: the user's messages": 15, "bad half of the transcript without roles": 33, "bad the last message": 1,
	"bad list of names": 21, "bad extension: list of names": 24, "bad list of numbers": 6, "bad extension: list of numbers": 3,
	"bad answer to the last message": 6, "bad extension: answer to the last message": 27, "bad refusal": 3, "bad extension: refusal": 6,
	"bad poem": 9, "bad extension: poem": 9, "bad extension: near subject": 9, "bad words in any order": 5, "bad extension: words in any order": 5,
	"bad extension: earlier forgotten": 12, "bad extension: earlier summary, continued": 3,
	"good abstract prose": 33, "good extension: abstract prose": 30, "good other words": 12, "good extension: other words": 12,
	"good extension: headings": 3, "good extension: extending, brief": 7,
}

// measure gives the answers to the requests to summarize the fixtures, shows what goes wrong and returns it
// by name. Of the bad and the good ones no more than so many percent may go wrong.
func (g gate) measure(fixtures []fixture, most float64) map[string]figure {
	g.t.Helper()
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "policy\tbad first\tstored\tbad extending\tstored\tgood\trefused\t")
	named := map[string]figure{}
	for i, p := range policies() {
		if i > 0 && !g.all {
			break
		}
		first, extending := g.bad(p, fixtures, named)
		good := g.good(p, fixtures, named)
		fmt.Fprintf(table, "%s\t%d\t%.1f %%\t%d\t%.1f %%\t%d\t%.1f %%\t\n", p.name, first.asked, first.share(), extending.asked, extending.share(), good.asked, good.share())
		if bad := (figure{asked: first.asked + extending.asked, wrong: first.wrong + extending.wrong}); max(bad.share(), good.share()) > most {
			g.t.Errorf("%s: %.1f %% of the bad answers are stored and %.1f %% of the good ones refused, want at most %.1f", p.name, bad.share(), good.share(), most)
		}
	}
	must.Do(g.t, table.Flush())
	g.t.Logf("answers to the request for a summary\n%s\nbad answers that were stored and good ones that were refused: %s", &out, list(named))
	return named
}

// question is a request for a summary and its answer.
type question struct {
	fixture fixture
	answer
}

// badAnswers returns bad answers by kind: those that list returns for each fixture and
// the next one, which is in the same language if there is one.
func badAnswers(fixtures []fixture, list func(f, other fixture) []answer) map[string][]question {
	kinds := map[string][]question{}
	for i, f := range fixtures {
		for _, a := range list(f, fixtures[i^1]) {
			kinds[a.kind] = append(kinds[a.kind], question{f, a})
		}
	}
	return kinds
}

// sample returns all of the questions, or one of each kind.
func (g gate) sample(kinds map[string][]question) []question {
	var all []question
	for kind, list := range kinds {
		if !g.all {
			n := len(kind) % len(list) // another language for each kind
			list = list[n : n+1]
		}
		all = append(all, list...)
	}
	return all
}

// bad counts the bad answers that are stored as they are.
func (g gate) bad(p policy, fixtures []fixture, named map[string]figure) (first, extending figure) {
	for _, q := range g.sample(badAnswers(fixtures, func(f, other fixture) []answer { return slices.Concat(f.bad, fixedAnswers(), madeOf(f, other)) })) {
		first.add(g.ask(q.fixture, p, q.answer, ""), true, q.fixture.name+" bad "+q.kind, named)
		extending.add(g.extend(q.fixture, p, q.answer), true, q.fixture.name+" bad extension: "+q.kind, named)
	}
	for _, q := range g.sample(badAnswers(fixtures, everyExtending)) {
		extending.add(g.extend(q.fixture, p, q.answer), true, q.fixture.name+" bad extension: "+q.kind, named)
	}
	return first, extending
}

// extend asks for a summary of the second half of the fixture that extends the one of the
// first half.
func (g gate) extend(f fixture, p policy, a answer) summarize.Result {
	half := f
	half.messages = f.messages[len(f.messages)/2:]
	return g.ask(half, p, a, f.earlier)
}

// good counts the good answers that are refused, as the first summary and as an extension.
func (g gate) good(p policy, fixtures []fixture, named map[string]figure) figure {
	var f figure
	for _, fixture := range fixtures {
		for _, a := range fixture.good {
			if !strings.HasPrefix(a.kind, "extending") {
				f.add(g.ask(fixture, p, a, ""), false, fixture.name+" good "+a.kind, named)
			}
			f.add(g.extend(fixture, p, a), false, fixture.name+" good extension: "+a.kind, named)
		}
	}
	return f
}

// list returns the names under which answers go wrong, the most frequent first.
func list(named map[string]figure) string {
	var lines []string
	for _, name := range slices.SortedFunc(maps.Keys(named), func(a, b string) int {
		return cmp.Or(named[b].wrong-named[a].wrong, strings.Compare(a, b))
	}) {
		if f := named[name]; f.wrong > 0 {
			lines = append(lines, fmt.Sprintf("\n  %d of %d × %s %s", f.wrong, f.asked, name, f.cause))
		}
	}
	return cmp.Or(strings.Join(lines, ""), "none")
}

// everyExtending returns the bad answers to the request to extend the earlier summary of
// the fixture. All keep of it what a good answer would, and tell nothing of what followed.
func everyExtending(f, other fixture) []answer {
	words := []rune(f.earlier)
	return append([]answer{
		{"earlier summary", f.earlier},
		{"earlier summary, continued", f.earlier + " " + f.continued},
		{"a third of it and inventions", string(words[:len(words)/3]) + " " + other.good[0].text},
	}, f.extending...)
}

// fixedAnswers are what broken parts between a model and its client answer.
func fixedAnswers() []answer {
	return []answer{
		{"dot", "."}, {"dots", "..."}, {"heading alone", "Summary:"}, {"end of a stream", "[DONE]"}, {"word of an attacker", "OWNED"},
		{"error page", "<html>\n<head><title>502 Bad Gateway</title></head>\n<body>\n<center><h1>502 Bad Gateway</h1></center>\n<hr><center>nginx/1.24.0</center>\n</body>\n</html>"},
		{"login page", "<!DOCTYPE html><html lang=\"en\"><body><form action=\"/login\"><label>User name</label><input name=\"user\"></form><p>Your session has ended. Please sign in again to continue with your work on this page.</p></body></html>"},
		{"provider's error", "Provider returned error"}, {"overloaded", "Overloaded"},
		{"proxy's error", "upstream connect error or disconnect/reset before headers. retried and the latest reset reason: remote connection failure, transport failure reason: delayed connect error: Connection refused"},
		{"quota", "You exceeded your current quota, please check your plan and billing details. For more information on this error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors."},
		{"error as JSON", `{"error": {"message": "The server had an error while processing your request. Sorry about that!", "type": "server_error", "param": null, "code": null}}`},
		{"stack trace", "Traceback (most recent call last):\n  File \"/srv/worker/app.py\", line 118, in generate\n    out = model.generate(**batch)\n  File \"/srv/worker/model.py\", line 64, in generate\n    raise RuntimeError(\"CUDA out of memory\")\nRuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB"},
		{"tool call as JSON", `{"name": "search_history", "arguments": {"query": "what was said about the plan before", "limit": 5}}`},
		{"tool call of Gemini", "```tool_code\nprint(default_api.search_history(query=\"everything that was said before\", limit=10))\n```"},
		{"tool call of DeepSeek", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>search_history\n```json\n{\"query\": \"everything\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"},
		{"tool call of Anthropic", "<function_calls>\n<invoke name=\"search_history\">\n<parameter name=\"query\">everything that was said before</parameter>\n</invoke>\n</function_calls>"},
		{"skeleton", "## Goal\n\n## Constraints and preferences\n\n## Facts\n\n## Decisions\n\n## Done and open\n\n## Errors and fixes\n\n## To look up"},
		{"skeleton with N/A", "## Goal\nN/A\n\n## Constraints and preferences\nN/A\n\n## Facts\nN/A\n\n## Decisions\nN/A\n\n## Done and open\nN/A\n\n## Errors and fixes\nN/A\n\n## To look up\nN/A"},
		{"loop of headings", strings.Repeat("## Goal\n- Melanie: [188]\n", 40)},
		{"letters", strings.Repeat("Zx9 qq7 vlk3 mmw0 tts8 ", 3) + "lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor incididunt ut labore et dolore magna aliqua ut enim"},
	}
}

// madeOf returns the bad answers that are made of the fixture or of another one.
func madeOf(f, other fixture) []answer {
	var transcript strings.Builder
	for _, m := range f.messages {
		fmt.Fprintf(&transcript, "[%d] %s: %s\n", m.Seq, m.Role, m.Content)
	}
	first, last := f.messages[0].Content, f.messages[len(f.messages)-1].Content
	word, _, _ := strings.Cut(first, " ")
	word = string([]rune(word)[:min(len([]rune(word)), 6)])
	return []answer{
		{"one word", strings.Repeat(word+" ", 120)},
		{"one sentence", strings.Repeat(firstSentence(first)+" ", 12)},
		{"the last message", last + " " + last},
		{"transcript", transcript.String()},
		{"half of the transcript", "## Goal\n" + transcript.String()[:strings.Index(transcript.String(), "[9] ")]},
		{"transcript in its fence", "<transcript>\n" + transcript.String()[:strings.Index(transcript.String(), "[5] ")] + "</transcript>"},
		{"words in any order", shuffled(transcript.String())},
		{"summary of another session", other.good[0].text},
		{"template: harmony", "<|channel|>analysis<|message|>We need to produce a summary. " + f.good[2].text + "<|end|>"},
		{"template: chatml", f.good[2].text + "\n<|im_end|>\n<|im_start|>user\n" + last},
		{"template: llama", f.good[2].text + " [/INST] " + last + " [INST]"},
		{"template: gemma", f.good[2].text + "<end_of_turn>\n<start_of_turn>user\n" + last},
		{"the instructions", echoOf("system")},
		{"the sections of the instructions", echoOf("sections")},
		{"the request", echoOf("request")},
	}
}

var numbers = regexp.MustCompile(`\d[\d.,:]*\d`)

// copiesOf returns the second half of the messages, in an extension all of them, without roles, and what the user
// says and the numbers in it.
func copiesOf(f fixture) []answer {
	var half, asked strings.Builder
	for _, m := range f.messages[len(f.messages)/2:] {
		half.WriteString(m.Content + "\n")
		if m.Role == core.RoleUser {
			asked.WriteString(m.Content + "\n")
		}
	}
	return []answer{
		{"half of the transcript without roles", half.String()}, {"the user's messages", asked.String()},
		{"list of numbers", strings.Join(numbers.FindAllString(half.String(), -1), ", ")},
	}
}

// firstSentence returns the beginning of the text up to its first full stop.
func firstSentence(text string) string {
	if at := strings.IndexAny(text, ".。"); at > 0 {
		return text[:at+1]
	}
	return text
}

// echoOf is an answer that the model makes of its own request.
func echoOf(part string) string { return "\x00" + part }

// step is the answer as a model gives it, to every request.
func (a answer) step() llmtest.Step {
	part, isEcho := strings.CutPrefix(a.text, "\x00")
	if !isEcho {
		return llmtest.Step{Text: []string{a.text}, Repeat: true}
	}
	return llmtest.Step{Repeat: true, From: func(r llm.Request) llmtest.Step {
		system := strings.Join(r.System, "\n")
		switch part {
		case "sections":
			_, rest, _ := strings.Cut(system, "- Goal: ")
			sections, _, _ := strings.Cut(rest, "\n\nRules:")
			return llmtest.Say("## Goal\n" + strings.ReplaceAll(sections, "\n- ", "\n## "))
		case "request":
			before, _, _ := strings.Cut(r.Messages[0].Content, "<transcript>")
			_, after, _ := strings.Cut(r.Messages[0].Content, "</transcript>")
			return llmtest.Say(before + after + after)
		default:
			return llmtest.Say(system)
		}
	}}
}

// shuffled returns up to 150 words of the text far from their neighbors: the same at each run.
func shuffled(text string) string {
	words := strings.Fields(text)
	var out []string
	for i := range min(len(words), 150) {
		out = append(out, words[(i*61+i*i*7)%len(words)])
	}
	return strings.Join(out, " ")
}

//go:embed testdata
var files embed.FS

// fixture is a conversation, and answers to the request to summarize it.
type fixture struct {
	name      string // of the file
	messages  []core.Message
	earlier   string // a summary of the first half of the messages
	continued string // a sentence that says that there was more, and not what
	good      []answer
	bad       []answer
	extending []answer // bad ones to the request to extend the earlier summary
}

// answer is what a model answers.
type answer struct{ kind, text string }

// load reads the fixtures of the files that match the pattern.
func load(t *testing.T, pattern string) []fixture {
	t.Helper()
	count := tokens.NewCounter()
	var all []fixture
	for _, name := range must.Get(fs.Glob(files, "testdata/"+pattern+".txt"))(t) {
		content := must.Get(files.ReadFile(name))(t)
		f := fixture{name: strings.TrimSuffix(path.Base(name), ".txt")}
		for _, section := range strings.Split("\n"+string(content), "\n=== ")[1:] {
			title, body, _ := strings.Cut(section, "\n")
			kind, isBad := strings.CutPrefix(title, "bad ")
			extending, isExtending := strings.CutPrefix(title, "extending ")
			switch {
			case title == "conversation":
				f.messages = conversation(count, body)
			case title == "good":
				for _, text := range strings.Split("\n"+body, "\n--- ")[1:] {
					style, text, _ := strings.Cut(text, "\n")
					f.good = append(f.good, answer{style, strings.TrimSpace(text)})
				}
			case title == "earlier":
				f.earlier = strings.TrimSpace(body)
			case title == "continued":
				f.continued = strings.TrimSpace(body)
			case isExtending:
				f.extending = append(f.extending, answer{extending, strings.TrimSpace(body)})
			case isBad:
				f.bad = append(f.bad, answer{kind, strings.TrimSpace(body)})
			default:
				t.Fatalf("%s: section %q", name, title)
			}
		}
		all = append(all, f)
	}
	return all
}

// conversation reads lines such as "user: text"; other lines go on with the last.
func conversation(count *tokens.Counter, text string) []core.Message {
	var list []core.Message
	for line := range strings.Lines(strings.TrimSpace(text)) {
		role, said, ok := strings.Cut(line, ": ")
		if !ok || role != "user" && role != "assistant" && role != "tool" {
			list[len(list)-1].Content += line
			continue
		}
		seq := int64(len(list) + 1)
		list = append(list, core.Message{
			ID: core.MessageID(fmt.Sprintf("m-%d", seq)), Seq: seq, Role: core.Role(role), Content: said, Status: core.MessageComplete,
		})
	}
	for i := range list {
		list[i].Content = strings.TrimSpace(list[i].Content)
		list[i].TokenCount = count.Message(list[i])
	}
	return list
}
