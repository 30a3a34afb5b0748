package garbage_test

import (
	"embed"
	"fmt"
	"path"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/tokens"
	"bobbin/tests/must"
)

//go:embed testdata/*.txt
var files embed.FS

// fixture is a conversation, and answers to the request to summarize it.
type fixture struct {
	name      string // of the language
	messages  []core.Message
	earlier   string // a summary of the first half of the messages
	continued string // a sentence that says that there was more, and not what
	good      []answer
	bad       []answer
	extending []answer // bad ones to the request to extend the earlier summary
}

// answer is what a model answers.
type answer struct{ kind, text string }

// load reads the fixtures of a suffix, a language each.
func load(t *testing.T, suffix string) []fixture {
	t.Helper()
	count := tokens.NewCounter()
	var all []fixture
	for _, name := range []string{"en", "de", "zh", "es"} {
		content := must.Get(files.ReadFile(path.Join("testdata", name+suffix+".txt")))(t)
		f := fixture{name: name + suffix}
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
