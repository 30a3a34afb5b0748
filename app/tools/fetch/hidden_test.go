package fetch_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"pgregory.net/rapid"

	"bobbin/app/tools/fetch"
)

// What a page does not show to its readers is not shown to a model either, and the
// model is told that there was something.
func TestHiddenText(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ body, want string }{
		"attribute":            {`<p>a<p hidden>no<p>b`, "a\n\nb"},
		"with a value":         {`<div hidden="hidden">no</div>b`, "b"},
		"found by searching":   {`<div hidden="until-found">a</div>`, "a"},
		"display":              {`<span style="color: red; DISPLAY : None !important">no</span>b`, "b"},
		"with a comment":       {`<span style="display:/**/none">no</span>b`, "b"},
		"visibility":           {`<span style='visibility:hidden'>no</span>b`, "b"},
		"opacity":              {`<span style=opacity:0.0>no</span>b`, "b"},
		"no size":              {`<span style="font-size:0px">no</span>b`, "b"},
		"half visible":         {`<span style="opacity:.5;font-size:10px">a</span>b`, "ab"},
		"image":                {`<img alt=no hidden>b`, "b"},
		"elements that end it": {`<ul><li hidden>no<ul><li>no</ul>no<li>a</ul>b`, "- a\n\nb"},
		"cells":                {`<table><tr><td hidden>no<td>a<tr hidden><td>no<tr><td>b</table>c`, "| a\n| b\n\nc"},
		"never ended":          {`<section><div hidden>no<p>no</section>b`, "b"},
		"end of nothing":       {`<span>a<div hidden></span></b></p></li>no</div>b`, "a\nb"},
		"end of a paragraph":   {`<p>a<div hidden></p>no</div>b`, "a\nb"},
		"end outside a cell":   {`<div><table><tr><td><p hidden></div>no<p>a</table>b`, "|\n\na\n\nb"},
		"other elements":       {`<dialog>no</dialog><canvas>no</canvas><video>no</video><noembed>no</noembed>b`, "b"},
		"open dialog":          {`<dialog open>a</dialog>`, "a"},
		"the whole page":       {`<body style="opacity:0">a`, "a"},
		"ended at once":        {`<script/>no</script><div hidden/>no</div>b<svg/>c`, "bc"},
		"tags nobody sees":     {"<p>a\U000E0049\U000E0067&#xE006E;b", "ab"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := page(t, "text/html", tt.body)
			hid := !slices.Contains([]string{"found by searching", "image", "half visible", "open dialog", "the whole page", "tags nobody sees"}, name)
			if got.Text != tt.want || got.Hid != hid {
				t.Errorf("got %q, hid %v, want %q, %v", got.Text, got.Hid, tt.want, hid)
			}
		})
	}
	if got := page(t, "application/xhtml+xml", `<html><script src="x"/><div hidden=""/>a</html>`); got.Text != "a" {
		t.Errorf("XHTML: got %q, want what comes after elements that end at once", got.Text)
	}
	if got := page(t, "text/plain", "a\U000E0049b"); got.Text != "ab" {
		t.Errorf("plain: got %q, want no tag characters", got.Text)
	}
}

// seen returns the words that a browser shows, by the rules of HTML.
func seen(t *rapid.T, page string) []string {
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		if n.Type == html.TextNode {
			words = append(words, strings.Fields(n.Data)...)
		}
		for _, a := range n.Attr {
			if a.Key == "hidden" {
				return
			}
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
	}
	walk(root)
	return words
}

// Whatever is open and closed in whatever order: no word is shown that a browser
// hides. Of pages that are well made, all others are shown.
func TestHiddenAsInBrowsers(t *testing.T) {
	t.Parallel()
	blocks := []string{"div", "p", "section", "ul", "li", "dl", "dt", "dd", "blockquote", "pre", "span", "x-y"}
	families := [][]string{
		append([]string{"b", "em", "a", "i"}, blocks...),
		append([]string{"table", "tr", "td", "th", "tbody"}, blocks...),
		append([]string{"h2", "h3"}, blocks...),
	}
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		var open []string
		proper := rapid.Bool().Draw(t, "proper")
		flow := []string{"div", "section", "blockquote", "span", "em", "x-y"}
		names := rapid.SampledFrom(families).Draw(t, "family")
		b.WriteString("<!DOCTYPE html><body>")
		for i := range rapid.IntRange(1, 14).Draw(t, "steps") {
			name := rapid.SampledFrom(names).Draw(t, "name")
			if proper {
				name = rapid.SampledFrom(flow).Draw(t, "proper name")
			}
			switch kind := rapid.IntRange(0, 3).Draw(t, "kind"); {
			case kind == 0:
				fmt.Fprintf(&b, "<%s>", name)
				open = append(open, name)
			case kind == 1:
				fmt.Fprintf(&b, "<%s hidden>", name)
				open = append(open, name)
			case kind == 2 && proper && len(open) > 0:
				fmt.Fprintf(&b, "</%s>", open[len(open)-1])
				open = open[:len(open)-1]
			case kind == 2 && !proper:
				fmt.Fprintf(&b, "</%s>", name)
			}
			fmt.Fprintf(&b, " w%d ", i)
		}
		text := fetch.HTMLText(b.String())
		got, want := words(text), seen(t, b.String())
		slices.Sort(want)
		for _, w := range got {
			if _, ok := slices.BinarySearch(want, w); !ok {
				t.Fatalf("%s\nshows %s, which a browser hides; it shows %v", b.String(), w, want)
			}
		}
		if proper && len(got) != len(want) {
			t.Fatalf("%s\ngot %v, want %v", b.String(), got, want)
		}
	})
}

// words returns the words of a text that the test wrote.
func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r != 'w' && (r < '0' || r > '9') })
}
