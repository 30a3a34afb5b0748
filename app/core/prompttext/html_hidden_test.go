package prompttext_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/net/html"
	"pgregory.net/rapid"

	"bobbin/app/core/prompttext"
	"bobbin/tests/seed"
)

// read returns the text of a page.
func read(ctx context.Context, page string) string {
	return prompttext.ReadHTML(ctx, page, prompttext.HTMLOptions{Base: &url.URL{Scheme: "http", Host: "a.example"}, Max: 1 << 20}).Text
}

// Where more is open than is looked at, nothing ends what is hidden: what a browser
// hides is not shown there either, at the price of text that it shows.
func TestHiddenWhereItIsDeep(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("<div>", 70)
	for name, page := range map[string]string{
		"a cell":                  "<table><tr><td>" + deep + "w1<td hidden>w2",
		"a paragraph":             deep + "w1<p hidden>w2<span></p>",
		"a style in a paragraph":  strings.Repeat("<b>", 5) + strings.Repeat("<i>", 5) + strings.Repeat("<u>", 10) + "w1<p><em hidden></p>w2",
		"an element that goes on": "w1<div hidden>" + deep + strings.Repeat("</div>", 70) + "w2",
		"a style before":          "w1<b hidden>" + strings.Repeat("<i>", 20) + "<p></i></p>w2",
	} {
		text := read(t.Context(), "<!DOCTYPE html><body>"+page)
		if got := words(text); !slices.Equal(got, []string{"w1"}) {
			t.Errorf("%s: got %q, want w1 alone", name, got)
		}
	}
	shown := read(t.Context(), deep+"w1<script>no</script><svg><text>no</text></svg>w2")
	if shown != "w1w2" {
		t.Errorf("scripts and drawings: got %q, want w1 and w2", shown)
	}
}

// Styles that begin again in every paragraph are not copied into each: a tree of this page
// has 45 million elements.
func TestReopenedStylesAreNotCopied(t *testing.T) {
	t.Parallel()
	var page strings.Builder
	for i := range 450 {
		fmt.Fprintf(&page, "<b class=c%d>", i)
	}
	page.WriteString(strings.Repeat("<p>a", 100_000))
	if got := strings.Count(read(t.Context(), page.String()), "a"); got != 100_000 {
		t.Errorf("got %d paragraphs, want all 100,000", got)
	}
}

// A page is read no longer than its fetch may take.
func TestReadingEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	page := strings.Repeat("<p>word", 100_000)
	got, whole := read(ctx, page), read(t.Context(), page)
	if got == "" || len(got) > len(whole)/10 {
		t.Errorf("got %d bytes of %d, want the beginning only", len(got), len(whole))
	}
}

// FuzzHTML holds what is read of any page against a browser's rules: a text that is
// hidden there is not shown.
func FuzzHTML(f *testing.F) {
	for _, page := range []string{
		"<p>a<p hidden>b<p>c", "<table><tr><td><p></table>", strings.Repeat("<b><i>", 20) + "<p></p>", "<svg><title>x</svg>", "<select><option>", "<a href=x>y<a>",
		"<textarea>", "<template><td>", "<!--", "<math><mi><p>", "<li><ul><li>", "<dl><dt><dd>", "<object><param>", "<h1><h2>", strings.Repeat("<div>", 80) + "</div>",
	} {
		f.Add(page)
	}
	f.Fuzz(func(t *testing.T, page string) {
		if len(page) > 4<<10 || !utf8.ValidString(page) { // it is made valid before
			return
		}
		if text := read(t.Context(), page); !utf8.ValidString(text) || len(text) > 1<<20 {
			t.Errorf("got %d bytes, valid %v", len(text), utf8.ValidString(text))
		}
		const secret = "w4711"
		marked := page + "<p hidden>" + secret
		root, err := html.Parse(strings.NewReader(marked))
		if err != nil || strings.Contains(strings.Join(shownWords(root), ""), secret) {
			return
		}
		if got := read(t.Context(), marked); strings.Contains(got, secret) {
			t.Errorf("%q shows what a browser hides: %q", marked, got)
		}
	})
}

// seen returns the words that a browser shows, by the rules of HTML.
func seen(t *rapid.T, page string) []string {
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	return shownWords(root)
}

// shownWords returns the words of a page that are not hidden.
func shownWords(root *html.Node) []string {
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
	seed.Check(t, func(t *rapid.T) {
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
		text := read(context.Background(), b.String())
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
