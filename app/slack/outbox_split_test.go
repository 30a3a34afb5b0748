package slack

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/must"
	"bobbin/tests/seed"
	"bobbin/tests/slackfake/fakeslack"
)

// Whatever the text, the parts join to it, fit into posts, begin and end between characters,
// and leave no code block open.
func TestSplitTextProperties(t *testing.T) {
	t.Parallel()
	line := rapid.OneOf(
		rapid.SampledFrom([]string{"", "", "```", "```go", "````md", "~~~", "| a | b |", "|---|---|", "| 1 | 2 |", "# Head", "- item"}),
		rapid.StringMatching(`[a-z 😀<|]{0,80}`),
		rapid.Map(rapid.IntRange(0, 14_000), func(n int) string { return strings.Repeat("wörd😀", n/6) }),
	)
	seed.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(line, 0, 400).Draw(t, "lines"), "\n")
		if rapid.Bool().Draw(t, "many rows") {
			text += "\n\n| a | b |\n|---|---|\n" + strings.Repeat("| 1 | 2 |\n", rapid.IntRange(0, 300).Draw(t, "rows"))
		}
		checkParts(t, text)
	})
}

type failer interface {
	Fatalf(format string, args ...any)
}

func checkParts(t failer, text string) {
	at := 0
	for i, s := range splitText(text, 0) {
		if s.from != at || s.to <= s.from {
			t.Fatalf("part %d: got %+v, want it to begin at %d", i, s, at)
		}
		at = s.to
		part := renderSpan(text, s)
		if n := core.UTF16Len(part); n > maxPost {
			t.Fatalf("part %d: got %d characters, want at most %d", i, n, maxPost)
		}
		if !utf8.ValidString(part) {
			t.Fatalf("part %d cuts a character", i)
		}
		if openFence(part) {
			t.Fatalf("part %d leaves a code block open:\n%s", i, part)
		}
		if rows := longestTable(part); rows > 100 && !regexp.MustCompile("```|~~~").MatchString(part) {
			t.Fatalf("part %d: got a table of %d rows, want at most 100", i, rows)
		}
	}
	if at != len(text) {
		t.Fatalf("the parts end at %d, want %d", at, len(text))
	}
}

// openFence reports whether the Markdown ends in a code block.
func openFence(text string) bool {
	opening := regexp.MustCompile("^\\s*(`{3,20}|~{3,20})([^`]*)$")
	fence := ""
	for l := range strings.SplitSeq(text, "\n") {
		trimmed := strings.TrimSpace(l)
		if m := opening.FindStringSubmatch(l); fence == "" && m != nil {
			fence = m[1]
		} else if fence != "" && strings.HasPrefix(trimmed, fence) && strings.Trim(trimmed, fence[:1]) == "" {
			fence = ""
		}
	}
	return fence != ""
}

func longestTable(text string) int {
	longest, rows := 0, 0
	for l := range strings.SplitSeq(text, "\n") {
		if l != "| 1 | 2 |" {
			rows = 0
			continue
		}
		rows++
		longest = max(longest, rows)
	}
	return longest
}

// The first parts stay the same while the text grows, as it does in a stream.
func TestSplitTextIsStable(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 400 {
		switch {
		case i%40 == 0:
			b.WriteString("\n```go\n")
		case i%40 == 20:
			b.WriteString("```\n\n")
		default:
			fmt.Fprintf(&b, "line %d with some words in it, so that it is long enough\n", i)
		}
	}
	text := b.String()
	whole := splitText(text, 0)
	if len(whole) < 2 {
		t.Fatalf("got %d parts, want several", len(whole))
	}
	for cut := 0; cut < len(text); cut += 701 {
		parts := splitText(text[:cut], 0)
		for i := range max(len(parts)-1, 0) {
			if parts[i] != whole[i] {
				t.Fatalf("with %d bytes: part %d is %+v, want %+v", cut, i, parts[i], whole[i])
			}
		}
	}
}

func TestSplitTextEndsWell(t *testing.T) {
	t.Parallel()
	prose := strings.Repeat("Some words. ", 700) // 8,400
	code := strings.Repeat("x := 1\n", 900)      // 6,300
	rows := strings.Repeat("| 1 | 2 |\n", 95)
	for name, test := range map[string]struct {
		text string
		want []string // how each part begins, and how it ends
	}{
		"short":           {"Hello.", []string{"Hello.", "Hello."}},
		"paragraphs":      {prose + "\n\nNext " + prose, []string{"Some", "words. ", "Next", "words. "}},
		"before a block":  {prose + "\n```go\n" + code + "```\nEnd.", []string{"Some", "words. ", "```go\nx", "End."}},
		"in a long block": {"```go\n" + code + code + "```\nEnd.", []string{"```go\nx", "x := 1\n```", "```go\nx", "End."}},
		"in a long table": {"| a | b |\n|---|---|\n" + rows, []string{"| a | b |\n|---|---|\n| 1", "| 2 |", "| 1", "| 2 |"}},
		"one word":        {strings.Repeat("x", 12_000), []string{"xxx", "xxx", "xxx", "xxx"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkParts(t, test.text)
			spans := splitText(test.text, 0)
			if len(spans) != len(test.want)/2 {
				t.Fatalf("got %d parts, want %d", len(spans), len(test.want)/2)
			}
			for i, s := range spans {
				part := renderSpan(test.text, s)
				if !strings.HasPrefix(part, test.want[2*i]) || !strings.HasSuffix(part, test.want[2*i+1]) {
					t.Errorf("part %d: got %.40q … %q, want %q … %q", i, part, part[max(0, len(part)-20):], test.want[2*i], test.want[2*i+1])
				}
			}
		})
	}
}

func TestNeutralizeMentions(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"<!channel> and <!here|x>":  "<\u2060!channel> and <\u2060!here|x>",
		"<!subteam^S1> <@U123>":     "<\u2060!subteam^S1> <\u2060@U123>",
		"a < b <!-- c --> <a@b.de>": "a < b <!-- c --> <a@b.de>",
	} {
		compare.Equal(t, fmt.Sprintf("%q", in), want, neutralizeMentions(in))
	}
	if got := plainText("a <b> & " + strings.Repeat("😀", 300)); !strings.HasPrefix(got, "a &lt;b&gt; &amp; 😀") || core.UTF16Len(got) > 320 {
		t.Errorf("got %q, want it escaped and short", got)
	}
}

// What can be approved is shown whole, exactly as it is. A call that is not has no button to approve
// it, shows a part of each argument, and says where to see it.
func TestApprovalShowsWholeCall(t *testing.T) {
	t.Parallel()
	notes := strings.Repeat("routine note. ", 80)
	for name, c := range map[string]struct {
		arguments string
		shown     []string
		whole     bool
	}{
		"nothing":             {`{}`, nil, true},
		"behind a long value": {`{"aaa": "` + notes + `", "command": "rm -rf /srv"}`, []string{notes, `"command": "rm -rf /srv"`}, true},
		"long numbers":        {`{"id": 9007199254740993, "list": [1e400, {"a<b": null}]}`, []string{`"id": 9007199254740993`, `[1e400,{"a<b":null}]`}, true},
		"turned writing":      {"{\"to\": \"mallory\u202eecila\u2066\"}", []string{`"to": "mallory\u202eecila\u2066"`}, true},
		"escaped letters":     {`{"c\u006fmmand": "r\u006d", "x": "a\nb"}`, []string{`"command": "rm"`, `"x": "a\nb"`}, true},
		"a name twice":        {`{"command": "ls", "command": "rm"}`, []string{`"command": "ls"`, `"command": "rm"`}, true},
		"no object":           {`rm {"a":`, []string{`rm {"a":`}, true},
		"a password":          {`{"url": "https://u:p4ssw0rd@evil.example/"}`, []string{"[redacted: password]", "bobbin runs approve r1"}, false},
		"too long":            {`{"aaa": "` + strings.Repeat(notes, 20) + `", "command": "rm -rf /srv"}`, []string{"characters left out", `"command": "rm -rf /srv"`, "bobbin runs approve r1"}, false},
		"many arguments":      {manyArguments(2000), []string{`"argument 0"`, "bobbin runs approve r1"}, false},
		"emoji":               {`{"a": "` + strings.Repeat("😀", 20_000) + `"}`, []string{"left out", "bobbin runs approve r1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			post := approvalContent(core.Approval{ID: "a1", RunID: "r1", Tool: "shell", Arguments: c.arguments, Status: core.ApprovalOpen})
			raw := must.Get(json.Marshal(post.blocks))(t)
			compare.Error(t, "Slack refuses the post", nil, fakeslack.CheckBlocks(raw))
			var blocks []struct{ Text struct{ Text string } }
			must.Do(t, json.Unmarshal(raw, &blocks))
			text := ""
			for _, b := range blocks {
				text += b.Text.Text
			}
			for _, want := range c.shown {
				compare.Contains(t, "text: want in it", want, text)
			}
			got := strings.Contains(string(raw), core.SlackActionApprove)
			compare.Equal(t, "whole, can be approved", []any{c.whole, true}, []any{got, strings.Contains(string(raw), core.SlackActionDeny)})
		})
	}
}

// manyArguments returns a call with so many arguments.
func manyArguments(n int) string {
	fields := map[string]string{}
	for i := range n {
		fields[fmt.Sprintf("argument %d", i)] = "x"
	}
	raw, _ := json.Marshal(fields)
	return string(raw)
}
