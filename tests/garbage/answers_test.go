package garbage_test

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

// everyBad returns all bad answers to the request to summarize the fixture: those of
// its file, and those that are the same in every language or made of the request.
func everyBad(f, other fixture) []answer {
	all := append([]answer{}, f.bad...)
	all = append(all, fixedAnswers()...)
	all = append(all, madeOf(f, other)...)
	return all
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
