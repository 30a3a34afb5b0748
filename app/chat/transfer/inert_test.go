package transfer_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/gomarkdown/markdown"
	"github.com/gomarkdown/markdown/parser"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	renderer "github.com/yuin/goldmark/renderer/html"
	"golang.org/x/net/html"
	"pgregory.net/rapid"

	"bobbin/app/chat/transfer"
	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/must"
	"bobbin/tests/seed"
)

// renderers make HTML of Markdown and let all tags through.
func renderers(t interface{ Fatal(args ...any) }) map[string]func(string) string {
	mark := func(m goldmark.Markdown) func(string) string {
		return func(text string) string {
			var b bytes.Buffer
			if err := m.Convert([]byte(text), &b); err != nil {
				t.Fatal(err)
			}
			return b.String()
		}
	}
	return map[string]func(string) string{
		"goldmark":        mark(goldmark.New(goldmark.WithRendererOptions(renderer.WithUnsafe()))),
		"goldmark as GFM": mark(goldmark.New(goldmark.WithExtensions(extension.GFM, extension.Footnote, extension.DefinitionList), goldmark.WithRendererOptions(renderer.WithUnsafe()))),
		"gomarkdown": func(text string) string {
			return string(markdown.ToHTML([]byte(text), parser.NewWithExtensions(parser.CommonExtensions|parser.Footnotes|parser.Attributes), nil))
		},
	}
}

// live returns what of a page does something: tags but those of plain text, attributes
// that run or load, links to other places than the web.
func live(page string) []string {
	plain := strings.Fields("a p br hr em strong del code pre ul ol li dl dt dd blockquote h1 h2 h3 h4 h5 h6 table thead tbody tfoot tr th td input sup sub section div")
	var found []string
	for z := html.NewTokenizer(strings.NewReader(page)); ; {
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			return found
		case html.CommentToken, html.DoctypeToken:
			found = append(found, z.Token().String())
		case html.StartTagToken, html.SelfClosingTagToken:
			token := z.Token()
			if !slices.Contains(plain, token.Data) {
				found = append(found, token.String())
			}
			for _, a := range token.Attr {
				if strings.HasPrefix(a.Key, "on") || a.Key == "src" || a.Key == "style" && !strings.HasPrefix(a.Val, "text-align:") || a.Key == "href" && !isHarmless(a.Val) {
					found = append(found, token.String())
				}
			}
		case html.TextToken, html.EndTagToken:
		}
	}
}

func isHarmless(address string) bool {
	return slices.ContainsFunc([]string{"http://", "https://", "ftp://", "mailto:", "#"}, func(s string) bool { return strings.HasPrefix(address, s) })
}

// talked returns the Markdown of a conversation with these messages and a last one.
func talked(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, messages []string) string {
	t.Helper()
	w := newWorld()
	for i, text := range append(messages, "the end") {
		m := core.Message{Seq: int64(i + 1), Role: []core.Role{core.RoleUser, core.RoleAssistant}[i%2], Content: text, OnPath: true, Author: text}
		if i%3 == 1 {
			m.ToolCalls = []core.ToolCall{{ID: "c", Name: "tool", Arguments: text}}
		}
		w.log = append(w.log, m)
	}
	w.session.Title, w.session.LastSeq = messages[0], int64(len(w.log))
	var b strings.Builder
	if err := w.service(transfer.Limits{}).Export(context.Background(), ann(), w.session, core.ExportMarkdown, &b); err != nil {
		t.Fatalf("export: %v", err)
	}
	return b.String()
}

// check fails if a renderer makes something live of the messages, or loses the last one
// in what another one has left open.
func checkInert(t interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}, messages []string) {
	t.Helper()
	document := talked(t, messages)
	if i := strings.IndexFunc(document, core.IsSteering); i >= 0 {
		t.Fatalf("%q: the control character %q is left", messages, []rune(document[i:])[0])
	}
	for name, render := range renderers(t) {
		page := render(document)
		if found := live(page); len(found) > 0 {
			t.Fatalf("%q, %s: %q is live in\n%s\nof\n%s", messages, name, found, page, document)
		}
		must.True(t, strings.Contains(page, "<p>the end</p>"), "%q, %s: the last message is not a paragraph in\n%s\nof\n%s", messages, name, page, document)
	}
}

// Nothing that somebody said is a tag, an image or a link that runs, in any renderer.
func TestMarkdownIsInert(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`a\<script>alert(1)</script> b\<img src=x onerror=alert(2)>`,
		`\\<script>alert(1)</script>`, "\\`<img src=x onerror=a>\\`", "` <img src=x onerror=a>\n` <img src=x onerror=a> `",
		"| a | b |\n|---|---|\n| ` | <img src=x onerror=a> | ` |", "`` ` <img src=x> `",
		"![x](http://evil.example/pixel)", "\\![x](http://evil.example/pixel)", "![x][y]\n\n[y]: http://evil.example/pixel", "[![x](a)](b)",
		"[x](javascript:alert(1))", "[x](  java&#115;cript:alert(1))", "[x](<javascript:alert(1)>)", "[x][y]\n\n[y]: javascript:alert(1)", "[x]\n\n[x]:javascript:alert(1)",
		"<javascript:alert(1)>", "<http://evil.example>", "<script\n>alert(1)</script>", "<!-- a", "<?php", "<![CDATA[", "</details>", "<DIV onclick=a>",
		"- a\n  ```\n<script>alert(1)</script>", "- ```\n<script>alert(1)</script>", "> ```\n<script>alert(1)</script>", "1. a\n   ~~~\nb\n<img src=x>\n   ~~~", ": ```\n<img src=x>",
		"    ```\n<script>alert(1)</script>", "\t```\n<img src=x>\n\t```", "```a`b\n<img src=x>\n```", "````\n```\n<img src=x>\n```", "~~~\n```\n~~~\n<img src=x>\n```",
		"```\u00a0\n<img src=x>\n```\u00a0\n<img src=x>", "```\n    ```\n<img src=x>\n```\n<img src=x>", "```js onclick=a\n```\n<b>", "a\r<script>alert(1)</script>\r\n<b>",
		"x\n{: onclick=\"alert(1)\"}", "{#id .c onclick=a}\n# title", "# title {onclick=a}", "[x]\n(javascript:a)", "[x] (javascript:a)", "![x](http://e)`<img src=x onerror=a>`", "a\u0085<script>\u2028<script>", "\u202e<script>", "# `\nb ` <img src=x> ` c",
		"&lt;script&gt;alert(1)&lt;/script&gt; &#60;img src=x&#62;", "www.example.com https://example.com/?<script>", "[a`](javascript:a)` [b](`javascript:c`)",
	} {
		checkInert(t, []string{text})
		checkInert(t, []string{text, "<img src=x> `<img src=x>` ```\n<img src=x>\n```", text})
	}
}

// The same for what is put together at random.
func TestMarkdownIsInertAtRandom(t *testing.T) {
	t.Parallel()
	pieces := []string{
		"`", "`", "``", "```", "````", "~~~", "\n", "\n", "\n\n", "\r", " ", "  ", "    ", "\t", "- ", "1. ", "> ", "# ", ": ", "\\", "\\", "|", "|-|\n", "a", "b c",
		"<script>x</script>", "<img src=x onerror=a>", "</details>", "<!--", "-->", "<a href='javascript:a'>", "](javascript:a)", "![x](http://e)", "[x]", "[x]: javascript:a", "[^1]: <b>",
		"<javascript:a>", "{: onclick=a}", "{onclick=a}", "&lt;", "\u00a0", "\u2028", "\x1b[2J", "\u202e", "***", "---", "===", "***a*", "<", ">", "(", ")", "{", "}", "onclick=a",
	}
	seed.Check(t, func(t *rapid.T) {
		text := rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 14).Draw(t, "pieces"), "")
		})
		checkInert(t, rapid.SliceOfN(text, 1, 3).Draw(t, "messages"))
	})
}

// Blocks of code stay as they are, and so do spans whose line has nothing active; of other
// lines every sign is there.
func TestMarkdownKeepsCode(t *testing.T) {
	t.Parallel()
	document := talked(t, []string{
		"Call `f[int]<-ch`.\nA `Vec<T>` too, \\<b>:\n\n1. so:\n   ```go\n   func f[T any](a <-chan T) {}\n     // <deeper>\n   ```\n2. and *this* [link](https://example.com)",
	})
	for name, render := range renderers(t) {
		page := render(document)
		var text strings.Builder
		for z := html.NewTokenizer(strings.NewReader(page)); z.Next() != html.ErrorToken; {
			text.WriteString(z.Token().String())
		}
		for _, want := range []string{
			"<code>f[int]&lt;-ch</code>", "A `Vec&lt;T&gt;` too, \\&lt;b&gt;:", "func f[T any](a &lt;-chan T) {}\n  // &lt;deeper&gt;\n</code></pre>", "<em>this</em>", "[link](",
		} {
			compare.True(t, strings.Contains(strings.Map(asWritten, text.String()), want), "%s: got %s, want %s in it", name, text.String(), want)
		}
	}
}

// asWritten leaves out what renderers add.
func asWritten(r rune) rune {
	if unicode.Is(unicode.Cf, r) {
		return -1
	}
	return r
}
