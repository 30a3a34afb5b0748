package term_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"bobbin/app/cli/term"
	"bobbin/tests/compare"
	"bobbin/tests/seed"
)

// write writes the pieces on a screen and returns it.
func write(t *testing.T, width, height int, pieces ...string) *screen {
	t.Helper()
	s := newScreen(t, width)
	m := term.NewMarkdown(s, width, height)
	for _, piece := range pieces {
		m.Write(piece)
	}
	m.Close()
	return s
}

// runesOf splits a text as finely as it can come.
func runesOf(text string) []string { return strings.Split(text, "") }

func TestMarkdownPassesTextOnWithoutTerminal(t *testing.T) {
	t.Parallel()
	for _, pieces := range [][]string{{"**bold** ", "text"}, {"**bold** text\n"}} {
		var b strings.Builder
		m := term.NewMarkdown(&b, 0, 0)
		for _, piece := range pieces {
			m.Write(piece)
		}
		m.Close()
		compare.Equal(t, fmt.Sprintf("%q", pieces), "**bold** text\n", b.String())
	}
}

func TestMarkdownBlocks(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, want string }{
		{"paragraphs", "one\ntwo\n\n\n\nthree", "one\ntwo\n\nthree"},
		{"heading", "## Two ##\ntext", "Two\ntext"},
		{"no heading", "#hash and #1", "#hash and #1"},
		{"list", "- a\n* b\n  + c\n10. d", "• a\n• b\n  • c\n10. d"},
		{"wrapped item", "- " + strings.Repeat("word ", 9), "• word word word word word word\n  word word word"},
		{"quote", "> said\n> > more", "│ said\n│ │ more"},
		{"rule", "a\n\n---\n\nb", "a\n\n" + strings.Repeat("─", 33) + "\n\nb"},
		{"code", "```go\nif a {\n\tb  := \"**x**\"\n\n}\n```\nend", "  if a {\n      b  := \"**x**\"\n\n  }\nend"},
		{"code in tildes", "~~~\n```\n~~~", "  ```"},
		{"open code", "```\nx", "  x"},
		{"four ticks", "````\n```\nx\n````\n*y*", "  ```\n  x\ny"},
		{"long words", strings.Repeat("x", 40), strings.Repeat("x", 33) + "\n" + strings.Repeat("x", 7)},
		{"controls", "a\x1b[2Jb\rc\x07", "a[2Jbc"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			compare.Equal(t, "at once", tt.want, write(t, 34, 100, tt.text).text())
			compare.Equal(t, "by characters", tt.want, write(t, 34, 100, runesOf(tt.text)...).text())
		})
	}
}

func TestMarkdownInline(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text   string
		want   string
		styled []string
	}{
		{"a **b c** d", "a b c d", []string{"1:b c"}},
		{"*i* _i_ ***bi*** ~~s~~", "i i bi s", []string{"3:i", "3:i", "1;3:bi", "9:s"}},
		{"`code *x*`", "code *x*", []string{"1:code *x*"}},
		{"`` a`b ``", "a`b", []string{"1:a`b"}},
		{"**a `b` c**", "a b c", []string{"1:a b c"}},
		{"[Go](https://go.dev/a_(b))", "Go (https://go.dev/a_(b))", []string{"4:Go"}},
		{"![cat](c.png)", "image: cat (c.png)", []string{"4:cat"}},
		{"<https://x.y>", "<https://x.y>", nil},
		// What is not certainly Markdown stays as it is, and no tag is left out.
		{"List<T> and <b>x</b>", "List<T> and <b>x</b>", nil},
		{"2*3*4 and 2 * 3 * 4", "2*3*4 and 2 * 3 * 4", nil},
		{"snake_case_name __init__.py", "snake_case_name init.py", []string{"1:init"}},
		{"**open and `open", "**open and `open", nil},
		{"[a] (b) and [c](d e)", "[a] (b) and [c](d e)", nil},
		{`\*no\* 100\%`, `*no* 100\%`, nil},
		{"これは**重要**です", "これは重要です", []string{"1:重要"}},
	}
	for _, tt := range tests {
		s := write(t, 60, 100, runesOf(tt.text)...)
		compare.Equal(t, fmt.Sprintf("%q", tt.text), tt.want, s.text())
		compare.Equal(t, fmt.Sprintf("%q styles", tt.text), tt.styled, s.styled())
	}
}

// Text without spaces breaks between its characters, not before a closing sign.
func TestMarkdownWideCharacters(t *testing.T) {
	t.Parallel()
	s := write(t, 21, 100, runesOf("日本語の文章には空白がありません。折り返します。")...)
	want := "日本語の文章には空白\nがありません。折り返\nします。"
	compare.Equal(t, "", want, s.text())
	s = write(t, 11, 100, "一二三四。五")
	if strings.Contains(s.text(), "\n。") {
		t.Errorf("a row begins with a full stop:\n%s", s.text())
	}
	compare.Equal(t, "joined characters were parted", "👩‍👩‍👧 e\u0301 🇩🇪", write(t, 12, 100, "👩‍👩‍👧 e\u0301 🇩🇪").text())
}

func TestMarkdownTables(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		width int
		text  string
		want  string
	}{
		{"aligned", 40, "| a | num |\n|---|----:|\n| **x** | 1 |\n| y | 200 |\n\nend",
			"a │ num\n──┼────\nx │   1\ny │ 200\n\nend"},
		{"wide characters", 40, "| 名前 | x |\n|:-:|---|\n| 日本 | `a\\|b` |", "名前 │ x\n─────┼─────\n日本 │ a\\|b"},
		{"wrapped", 24, "| key | text |\n|---|---|\n| k | some words that are long |",
			"key │ text\n────┼──────────────────\nk   │ some words that\n    │ are long"},
		{"too narrow", 12, "|a|b|c|\n|-|-|-|\n|111111111|222222222|333333333|", ""},
		{"no table", 40, "| a | b |\ntext", "| a | b |\ntext"},
		{"open code", 40, "|a|b|\n|-|-|\n|`1|2|", "a  │ b\n───┼──\n`1 │ 2"},
		{"too many cells", 40, "|a|b|\n|-|-|\n|1|2|3|", "a │ b\n──┼──────\n1 │ 2 | 3"},
		{"another head", 40, "|a|b|c|\n|-|-|\n|1|2|3|", "|a|b|c|\n|-|-|\n|1|2|3|"},
		{"missing cells", 40, "|a|b|\n|-|-|\n|1|", "a │ b\n──┼──\n1 │"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := write(t, tt.width, 100, runesOf(tt.text)...)
			if tt.want == "" {
				tt.want = write(t, tt.width, 1, tt.text).text() // as it was written
			}
			compare.Equal(t, "", tt.want, got.text())
		})
	}
}

// However an answer is cut into pieces, the same stands on the screen at the end;
// no row is too long; and no letter is left out, but a code block's language.
func TestMarkdownDoesNotDependOnPieces(t *testing.T) {
	t.Parallel()
	parts := rapid.SampledFrom([]string{
		"word", " ", " ", "\n", "\n\n", "**", "*", "_", "`", "```\n", "~~", "# ", "- ", "1. ", "> ", "|", "|-|-|\n", "| a | b |\n", "|a|b\n|-|-\n",
		"[x](y)", "[", "](", "日本語、", "。", "é", "e\u0301", "👩‍👧", "❤\ufe0f", "\t", "\\", "<T>", "---\n", strings.Repeat("long", 9),
	})
	seed.Check(t, func(r *rapid.T) {
		text := strings.Join(rapid.SliceOfN(parts, 0, 40).Draw(r, "text"), "")
		width := rapid.IntRange(11, 50).Draw(r, "width")
		var pieces []string
		for rest := text; rest != ""; {
			letters := runesOf(rest)
			n := rapid.IntRange(1, min(len(letters), 9)).Draw(r, "piece")
			pieces = append(pieces, strings.Join(letters[:n], ""))
			rest = strings.Join(letters[n:], "")
		}
		whole, cut := write(t, width, 1000, text), write(t, width, 1000, pieces...)
		if whole.text() != cut.text() {
			r.Fatalf("%q in pieces %q:\n%s\nat once:\n%s", text, pieces, cut.text(), whole.text())
		}
		if want, got := letters(text), letters(whole.text()); want != got && !strings.Contains(text, "```") && !strings.Contains(text, "~~~") {
			r.Fatalf("%q: letters %q, want %q", text, got, want)
		}
		if n := cut.widest(); n > width {
			r.Fatalf("%q: a row of %d columns, want at most %d", text, n, width)
		}
	})
}

// letters returns a text's letters, in order.
func letters(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) {
			return r
		}
		return -1
	}, text)
}

// A line of any length is shown as it comes, and in full.
func TestMarkdownEndlessLine(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("word ", 3000) + "end"
	got := write(t, 50, 20, strings.SplitAfter(text, " ")...).text()
	words := strings.Fields(got)
	compare.True(t, len(words) == 3001 && words[3000] == "end", "%d words, want 3001", len(words))
}

// What has left a low screen is not drawn again: the cursor cannot go there.
func TestMarkdownLowScreen(t *testing.T) {
	t.Parallel()
	text := "a **b** " + strings.Repeat("word ", 40) + "\n| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\nend"
	got := write(t, 30, 3, runesOf(text)...).text()
	compare.True(t, strings.HasPrefix(got, "a **b** word") && strings.Contains(got, "| 3 | 4 |\nend"), "the text changed:\n%s", got)
}
