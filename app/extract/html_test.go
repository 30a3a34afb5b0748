package extract_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// page reads a web page.
func page(t *testing.T, kind, body string) core.WebPage {
	t.Helper()
	return must.Get(newReader(t).ReadPage(t.Context(), kind, "http://a.example/dir/page", body))(t)
}

// A page becomes its title, headings, links, lists and paragraphs.
func TestReadableText(t *testing.T) {
	t.Parallel()
	got := page(t, "text/html", `<!DOCTYPE html><html><head><title>
 A  page &amp; more </title><style>p{}</style><script>alert("<p>no</p>")</script></head>
<body onload="x()"><nav><a href="/">Home</a> <a href="#top">Top</a></nav>
<h1>Great  <em>news</em></h1><p>One<br>two,
  three <a href="other?x=1">a <b>link</b></a>, <a href="javascript:alert(1)">no link</a>, <a href="http://u:p@x/">nor this</a>.</p>
<ul><li>first<li><p>second</p></li></ul>
<h2>Table</h2><table><tr><th>k</th><th>v</th></tr><tr><td>a</td><td>1</td></tr></table>
<pre>code  {
	x }</pre><img src="x.png" alt="a cat"><svg><text>drawing</text></svg><noscript>no</noscript><!-- comment -->
<template><p>no</p></template><textarea>typed</textarea></body></html>`)
	want := `[Home](http://a.example/) Top

# Great *news*

One  
two, three [a **link**](http://a.example/dir/other?x=1), no link, nor this.

- first
- second

## Table

| k | v |
|---|---|
| a | 1 |

` + "```\ncode  {\n\tx }\n```" + `

[image: a cat]

typed`
	compare.Equal(t, "text", want, got.Text)
	compare.Equal(t, "title, cut", []any{"A page & more", false}, []any{got.Title, got.Cut})
}

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
		"cells":                {`<table><tr><td hidden>no<td>a<tr hidden><td>no<tr><td>b</table>c`, "|  |\n|---|\n| a |\n| b |\n\nc"},
		"never ended":          {`<section><div hidden>no<p>no</section>b`, "b"},
		"end of nothing":       {`<span>a<div hidden></span></b></p></li>no</div>b`, "ab"},
		"end of a paragraph":   {`<p>a<div hidden></p>no</div>b`, "a\n\nb"},
		"end outside a cell":   {`<div><table><tr><td><p hidden></div>no<p>a</table>b`, "|  |\n|---|\n| a |\n\nb"},
		"other elements":       {`<dialog>no</dialog><canvas>no</canvas><video>no</video><noembed>no</noembed>b`, "b"},
		"open dialog":          {`<dialog open>a</dialog>`, "a"},
		"the whole page":       {`<body style="opacity:0">a`, "a"},
		"ended at once":        {`<script/>no</script><div hidden/>no</div>b<svg/>c`, "bc"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := page(t, "text/html", tt.body)
			hid := !slices.Contains([]string{"found by searching", "image", "half visible", "open dialog", "the whole page"}, name)
			compare.Equal(t, "text, hidden", []any{tt.want, hid}, []any{got.Text, got.HasHidden})
		})
	}
	compare.Equal(t, "XHTML: want what comes after elements that end at once", "a", page(t, "application/xhtml+xml", `<html><script src="x"/><div hidden=""/>a</html>`).Text)
}

// Every page is read or refused: none makes reading it slow, or its text long or invalid.
func TestAdversePages(t *testing.T) {
	t.Parallel()
	const most = 2 << 20
	for name, body := range map[string]string{
		"nested":          strings.Repeat("<div>", 200_000) + "x",
		"links in links":  strings.Repeat("<a href=x>", 20_000),
		"long addresses":  "<base href=x>" + strings.Repeat("<a href=x>y</a>", 20_000),
		"never closed":    "<script>" + strings.Repeat("x", most),
		"attributes":      "<p " + strings.Repeat("a=b ", 400_000) + ">x",
		"one long word":   "<p>" + strings.Repeat("x", most-100),
		"lists":           strings.Repeat("<ul><li>", 200_000),
		"entities":        strings.Repeat("&#0;&#xD800;&amp;", 100_000),
		"closing only":    strings.Repeat("</a></pre></li>", 100_000),
		"cut in a letter": strings.Repeat("ü", most/2+10),
		"styles again":    manyStyles() + strings.Repeat("<p>a", 16_000),
		"quotes in lists": strings.Repeat("<blockquote><ul><li>", 40) + strings.Repeat("<br>x", 5_000),
		"titles":          strings.Repeat("<title>x</title>", 100_000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := newReader(t).ReadPage(t.Context(), "text/html", "http://a.example/", body)
			if err != nil && err.Error() != "the page is nested too deeply, or reading it takes too much time or memory" {
				t.Error(err)
			}
			if len(got.Text) > most || !utf8.ValidString(got.Text) {
				t.Errorf("got %d bytes, valid %v, title of %d", len(got.Text), utf8.ValidString(got.Text), len(got.Title))
			}
		})
	}
}

// manyStyles are styles that begin again in every paragraph: a tree of 1.1 GB with 16,000.
func manyStyles() string {
	var b strings.Builder
	for i := range 450 {
		fmt.Fprintf(&b, "<b class=c%d>", i)
	}
	return b.String()
}
